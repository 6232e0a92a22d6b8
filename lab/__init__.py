"""Proves the services: by a specification, by runs under faults, and by benchmarks."""
