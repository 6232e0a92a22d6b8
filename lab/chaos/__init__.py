"""A whole fleet, a nemesis that breaks it at random, and two judges that report what was lost."""
