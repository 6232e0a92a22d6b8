"""`python -m demo`: the whole fleet, as `make fleet` starts it: what `honcho start` does.

Before anything starts, it says which servers the fleet uses, and checks that it can have its folder
and its ports. If not, it ends with one sentence, and status 1: another fleet may have them.
"""

# ruff: noqa: E402 (as in `demo.honcho`)
import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)

from demo import honcho
from rocket_rides.settings import PROJECT
from unified_log import process


def main() -> None:
    """Run the fleet, and end with its status."""
    parser = process.Parser("python -m demo", __doc__)
    parser.add_argument("--env", default=".env", help="settings (default: %(default)s)")
    given = parser.parse_args()
    # Not what PROCFILE and PORT say, of which honcho would hear.
    ours = ["--procfile", "Procfile", "start", "--port", "5000"]
    honcho.main(["--app-root", str(PROJECT), "--env", given.env, *ours])


if __name__ == "__main__":
    main()
