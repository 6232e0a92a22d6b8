"""The protocol as pure transition systems, and an explorer that visits all of their states.

`rollup` stands on a log that is right: a reader gets as far as `sent` and misses nothing. This is
what the invariants of the core say (5, 8 and 11), so what is shown of it holds on the core too.
`inbox` stands on the same log, and on `queue`: that a row is decided in the end, and for good.
"""
