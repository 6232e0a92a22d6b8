"""The books at the beginning of a life: its rows are as they are, and must be right."""

from lab.chaos.books import Books
from lab.chaos.derived_judge import completes_minutes, completes_receipts, computes
from lab.chaos.recording import Life
from lab.chaos.rows import is_reopened, name_of, number, staged, taken, text, total_of
from lab.chaos.specified import require


def opened(life: Life) -> Books:
    """The books of a new life. Raises NotAllowed."""
    books = Books()
    rows = life.tables
    for row in rows["rides"]:
        books.take(*taken(row))
    for row in rows["staged_log_records"]:
        books.stage(staged(row))
    [state] = rows["streamer_state"]
    last_sent = number(state, "last_sent_id")
    sent = sorted(ride for ride in books.rides if ride <= last_sent)
    books.send(sent, last_sent)
    books.first_sent = last_sent
    unsent = sorted({*books.rides} - {*sent})
    require([ride.id for ride in books.staged] == unsent, "a ride has its record until sent")
    books.terms = tuple(sorted((number(row, "after"), name_of(row)) for row in rows["terms"]))
    totals = {row["name"]: row["total_distance"] for row in rows["consumer_states"]}
    for row in rows["checkpoints"]:
        books.checkpoints[text(row, "kind"), text(row, "name")] = text(row, "id")
        if row["kind"] == "total":
            total = total_of(row, totals[row["name"]])
            books.totals[text(row, "name")] = total
            books.healed[text(row, "name")] = number(row, "gaps_healed")
            require(total.ride_id <= last_sent, "no checkpoint is past last_sent")
            require(total.distance == books.total_upto(total.ride_id), "a total is wrong")
        elif row["kind"] == "rollup":
            books.rollup = number(row, "last_ride_id")
    for row in rows["ride_minutes"]:
        computes(books, row)
    for row in rows["rollup_state"]:
        completes_minutes(books, number(row, "complete_to"))
        books.generation = text(row, "generation")
    books.resets = {number(row, "id"): text(row, "status") for row in rows["resets"]}
    books.outcomes = {number(row, "ride_id"): row["outcome"] or "" for row in rows["receipts"]}
    require(books.outcomes.keys() <= {*sent}, "a receipt of what was not sent")
    books.reopened = {number(row, "ride_id") for row in rows["receipts"] if is_reopened(row)}
    [state] = rows["receipts_state"]
    completes_receipts(books, number(state, "complete_to"))
    return books
