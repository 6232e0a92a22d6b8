"""Benchmarks: each figure beside its limit, measured in the same run on the same servers."""
