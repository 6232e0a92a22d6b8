"""`python -m unified_log.streamer`: moves settled staged records into the log, until SIGTERM.

SIGTERM finishes the current batch. What a crash leaves behind is in `unified_log.streamer.leading`;
the settings, each an environment variable, are in `unified_log.settings`. Run several, on several
machines: one leads, any other is a hot standby.
"""

from unified_log import process, settings
from unified_log.streamer import leading


def main() -> None:
    """Run the streamer until SIGTERM or SIGINT."""
    process.take_no_arguments("unified_log.streamer", __doc__)
    config = settings.load()
    config.begin_logging()
    leading.run(config, process.Stop().on_signals())


if __name__ == "__main__":
    main()
