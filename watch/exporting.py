"""Exports what /metrics shows, under the same names, where telemetry is exported."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from rocket_rides import telemetry
from watch.metrics import HELP, PREFIX, UNIT, Labels, samples
from watch.watching import PATIENCE, Watcher

UNITS = {"seconds": "s", "meters": "m", "bytes": "By"}  # as UCUM has them
# Seconds. Each metric is asked for by itself; those that are asked for together are of one look.
ONE_LOOK = 5.0


class Exported:
    """The values of the newest facts, asked for by the exporter's thread. Create it on the loop."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher, self._loop = watcher, asyncio.get_running_loop()
        self._values: dict[str, list[tuple[float, Labels]]] = {}
        self._look_at = 0.0

    def __call__(self, name: str) -> Iterable[tuple[float, Labels]]:
        """The samples of the metric `name`: none where nothing is known."""
        if time.monotonic() >= self._look_at and self._loop.is_running():
            self._look()
        return self._values.get(name, [])

    def _look(self) -> None:
        looking = asyncio.run_coroutine_threadsafe(self._watcher.fresh(), self._loop)
        facts = looking.result(PATIENCE + 1)
        values = defaultdict(list)
        for name, value, labels in samples(facts):
            if value is not None:
                values[PREFIX + name].append((float(value), labels))
        self._values, self._look_at = values, time.monotonic() + ONE_LOOK


async def export(watcher: Watcher) -> None:
    """Export what this watcher knows, from now on."""
    values = Exported(watcher)

    def make(meter: Meter) -> None:
        for name, told in HELP.items():

            def observe(_: CallbackOptions, name: str = PREFIX + name) -> Iterator[Observation]:
                return (Observation(value, labels) for value, labels in values(name))

            is_counter = name.endswith("_total")
            kind = meter.create_observable_counter if is_counter else meter.create_observable_gauge
            kind(PREFIX + name, [observe], unit(name), told)

    telemetry.measure(make)


def unit(name: str) -> str:
    """A metric's unit, as UCUM has it."""
    found = UNIT.search(name)
    return UNITS[found[1]] if found else "1"
