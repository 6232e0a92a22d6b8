"""The judge of the books: the tables, Redis, the warehouse and the journals must agree."""
