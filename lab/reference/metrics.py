"""The metrics: each with its labels and its HELP line, as `watch/metrics.py` tells Prometheus."""

from watch.metrics import HELP, LABELS


def metrics() -> str:
    shown = {name: f"{name}{braces(LABELS.get(name, ()))}" for name in HELP}
    width = max(map(len, shown.values()))
    lines = [f"{shown[name]:{width}}  {meaning}" for name, meaning in HELP.items()]
    return "\n".join(["```", *lines, "```"])


def braces(labels: tuple[str, ...]) -> str:
    """As they stand in a query."""
    return f"{{{','.join(labels)}}}" if labels else ""
