"""Tries what the pages tell a person to type, each from nothing, in the order of its page."""
