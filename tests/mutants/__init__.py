"""Mutants: the code with a small lie in it, each of which some test must notice."""
