"""Benchmarks: each figure next to a limit, measured in the same run on the same servers."""
