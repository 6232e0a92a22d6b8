"""A shop as others have them: UUID keys, SQLAlchemy's ORM, migrations of its own, and no log yet.

It stands for somebody else's project: as `orders`, beside nothing but `unified_log` and what that
needs. The page `docs/lift-it.md` adds a revision and a handler.
"""
