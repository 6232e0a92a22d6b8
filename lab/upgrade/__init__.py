"""A rolling upgrade under load, and the way back."""
