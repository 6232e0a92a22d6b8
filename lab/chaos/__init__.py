"""A whole fleet, a nemesis that breaks it at random, and a checker that reports what was lost."""
