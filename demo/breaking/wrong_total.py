"""A total that is wrong: no ride is missing, so only a reconciliation notices."""

from demo.breaking import reconciliation
from demo.breaking.healing import NotHealed
from demo.breaking.target import Target
from rocket_rides.errors import Unavailable

ADD_A_MILLIMETRE = """
    UPDATE consumer_states SET total_distance = total_distance + 0.001 WHERE name = %s
"""


def change_total(target: Target) -> None:
    """Add a millimetre to a total: only a reconciliation notices and repairs it."""
    name = target.victim.name
    _add_a_millimetre(target)
    target.say("No ride is missing, so nothing heals this but a reconciliation.")
    if target.at_terminal:
        target.say(f"`make reconcile` finds the drift, and has {name} reset.")
        target.say("`make break ARGS=reconcile` runs it too, and waits until the total is right.")
    else:
        target.say(
            f"That finds the drift, and has {name} reset: the button beside this one runs it."
        )


def reconcile(target: Target) -> None:
    """Add a millimetre to a total, unless one is wrong already, and reconcile."""
    if not target.at_terminal:
        reconciliation.require_installed()
    if all(each.is_exact for each in target.healing.totals.now()):
        _add_a_millimetre(target)
        target.say("No ride is missing, so only a reconciliation notices this.")
    else:
        target.say("A total is wrong already:")
        target.healing.show_totals()
    installed = "; Spark is installed if need be, and Java as root" if target.at_terminal else ""
    target.say(f"Now a reconciliation runs, as by `make reconcile`{installed}.")
    target.say("That takes half a minute, or minutes.")
    try:
        reconciliation.run(target.say, installs=target.at_terminal)
    except Unavailable as reason:
        raise NotHealed(f"{reason}. The total stays wrong until `make reconcile` works") from None
    target.healing.wait(target.newest_ride())


def _add_a_millimetre(target: Target) -> None:
    target.connection.execute(ADD_A_MILLIMETRE, [target.victim.name])
    target.say(f"A millimetre is added to the total of {target.victim.name}.")
    target.healing.show_totals()
