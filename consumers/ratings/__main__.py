"""`python -m consumers.ratings NAME`: reads the log and counts the ratings and their stars.

It guarantees what a total does (`python -m consumers`), in the same way: every rating counts once,
and the sum moves with the checkpoint, in one transaction. A crash leaves the same behind.
"""

from consumers.ratings.stars import Stars
from unified_log.readers import running
from unified_log.readers.report import Report


def main() -> None:
    """Run the consumer NAME until SIGTERM or SIGINT."""
    name = running.parse_name("consumers.ratings", __doc__)
    config, stop = running.start(name, "ratings")
    running.run(name, Stars, [Report(name)], config, stop)


if __name__ == "__main__":
    main()
