"""The names in Redis: the fields of an entry, and the keys beside the stream."""

# The fields of an entry, as Redis answers them.
DATA, PREV, TERM = b"data", b"prev", b"term"


def rollup_key(stream: str, generation: str) -> str:
    """The key at which a generation of the rollup has its Ick of dirty minutes."""
    return f"{stream}/rollup/{generation}"


def ick_keys(key: str) -> tuple[str, str, str]:
    """The keys of the Ick at `key`: its version, the producer set, the consumer set."""
    if not isinstance(key, str):
        raise TypeError(f"a key is a str, not {key!r}")
    return key, f"{key}/ick/{{{key}}}/pset", f"{key}/ick/{{{key}}}/cset"
