"""The pages of reference that are made from the code."""
