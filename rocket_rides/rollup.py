"""The rollup's keys in Redis, as several services see them."""


def rollup_key(stream: str, generation: str) -> str:
    """The key at which a generation of the rollup has its Ick of dirty minutes."""
    return f"{stream}/rollup/{generation}"


def ick_keys(ick_key: str) -> tuple[str, str, str]:
    """The keys of the Ick at `ick_key`: its version, the producer set, the consumer set."""
    if not isinstance(ick_key, str):
        raise TypeError(f"a key is a str, not {ick_key!r}")
    return ick_key, f"{ick_key}/ick/{{{ick_key}}}/pset", f"{ick_key}/ick/{{{ick_key}}}/cset"
