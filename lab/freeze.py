"""`python -m lab.freeze`: writes the digests of the schema's revisions to `migrations/frozen.txt`.

A released revision is frozen, and a test compares. Run this for a revision that nobody has yet.
"""

from rocket_rides.revisions import APPLICATION, REVISIONS, digest
from rocket_rides.settings import PROJECT
from unified_log.process import take_no_arguments
from unified_log.schema import LOG

FROZEN = PROJECT / "migrations/frozen.txt"


def digests() -> str:
    """A line for each revision: the component, the revision, and the digest up to it."""
    lines = [f"{LOG.name} {LOG.number(LOG.revision)} {LOG.digest}"]
    lines += [f"{APPLICATION.name} {APPLICATION.number(each)} {digest(each)}" for each in REVISIONS]
    return "\n".join(lines) + "\n"


def main() -> None:
    take_no_arguments("lab.freeze", __doc__)
    FROZEN.write_text(digests())


if __name__ == "__main__":
    main()
