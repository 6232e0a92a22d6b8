"""The judge of the books: Postgres, Redis, the warehouse and the journals must be true."""
