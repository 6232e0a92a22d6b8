"""`python -m demo.breaking WAY`: breaks the running fleet in one way, and shows how it heals.

Without a WAY it lists them. A frozen consumer always resumes, even after Ctrl-C or kill -9. Status
0 if the fleet has healed, or if it says what is left for you to do. Status 1 if it has not, or if
it could not be broken; one line says why.
"""

from demo.breaking.attempt import run
from demo.breaking.healing import Kind, NotHealed
from demo.breaking.ways import WAYS
from rocket_rides import settings
from unified_log.errors import Unavailable, in_one_line
from unified_log.process import Parser

LATECOMER = """\
One more: a consumer that starts late heals everything that it missed (Ctrl-C ends it).
  .venv/bin/honcho run .venv/bin/python -m consumers.totals latecomer
  .venv/bin/honcho run .venv/bin/python -m consumers.remove total latecomer   # afterwards"""


def main() -> None:
    """Break the fleet as the command line says."""
    parser = Parser("python -m demo.breaking", __doc__)
    parser.add_argument("way", nargs="?", choices=WAYS)
    seconds = "how long to freeze the consumer (default: %(default)s)"
    parser.add_argument("--seconds", type=float, default=5, help=seconds)
    given = parser.parse_args()
    if given.way is None:
        list_ways()
        return
    try:
        run(given.way, settings.load(), show, given.seconds)
    except (Unavailable, NotHealed) as reason:
        raise SystemExit(in_one_line(reason)) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def list_ways() -> None:
    show("Ways to break the running fleet and watch it heal:")
    for name, way in WAYS.items():
        show(f"  make break ARGS={name:17}{way.summary}")
    show(LATECOMER)


def show(line: str, _kind: Kind = Kind.NEWS) -> None:
    print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
