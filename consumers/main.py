"""The process of a consumer that reports what every reader does, and nothing else."""

from rocket_rides import service
from unified_log.readers import running
from unified_log.readers.reader import H
from unified_log.readers.report import Report


def main(handler: type[H], description: str | None, called: str = "consumer") -> None:
    """Be `python -m MODULE NAME`, a consumer with this handler, until SIGTERM or SIGINT.

    It has the fleet's injected crashes, and its telemetry, in which it is `called` so.
    """

    def run() -> None:
        name = running.parse_name(running.program(), description)
        config, stop = service.configure_consumer(name, called)
        running.run(name, handler, [Report(name)], config, stop, config.crash_rate)

    service.run(run)
