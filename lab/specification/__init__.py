"""The protocol as pure transition systems, and an explorer that visits all of their states.

`rollup` assumes a correct log: a reader gets as far as `sent` and misses nothing. The core's
liveness and invariants 8 and 11 say so, so what `rollup` shows also holds on top of the core.
`inbox` assumes the same log, and what `queue` shows: each row is decided in the end, for good.
`held_out`, too: a reader whose handler refuses some records, and what a retry or a reset does then.
`judge` is the nightly job: it decides by `verdict`, from witnesses of whom one may be altered.
"""
