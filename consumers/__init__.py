"""Rocket Rides' consumers: a folder for each kind.

`unified_log.readers` follows the log; what becomes of the records is up to a `handler`: those of
`totals` and `ratings` count them in the transaction that moves the checkpoint; that of `rollup`
does its work before, since it can be repeated. `receipts` shares the work among several processes,
as a consumer group of the stream.
"""
