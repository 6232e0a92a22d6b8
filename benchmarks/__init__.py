"""Measurements: each figure beside a limit, measured in the same run on the same servers."""
