"""`make break`: the fleet that runs, broken by a person in one way, and what became of it."""
