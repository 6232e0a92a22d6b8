"""What a run found, as a person, a program and a browser are shown it."""
