"""Mutants: the code with one small error each, which some test must notice."""
