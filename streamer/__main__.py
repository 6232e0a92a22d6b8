"""`python -m streamer`: moves settled staged records into the log, in order, in batches.

One streamer drains at a time; any other is a hot standby. What it guarantees, and what a crash
leaves behind, is in `unified_log.streamer.leading`. This process is that one with injected faults:
it sends DOUBLE_SEND_RATE of the batches twice.

SIGTERM finishes the current batch.
"""

from rocket_rides import service, settings, telemetry
from unified_log import process
from unified_log.streamer import leading


def main() -> None:
    """Run the streamer until SIGTERM or SIGINT."""
    process.take_no_arguments("streamer", __doc__)
    config = settings.load()
    service.configure(config)
    telemetry.configure(config, "streamer")
    leading.run(config, service.stop_on_signals(), config.double_send_rate)


if __name__ == "__main__":
    service.run(main)
