"""A shop whose orders were there before its log: `python shop.py CUSTOMER NUMBER` places some."""

import os
import random
import sys
from decimal import Decimal

import psycopg

# What there was before, and goes on to be the truth.
TABLE = """
    CREATE TABLE orders (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        created_at timestamptz NOT NULL DEFAULT now(),
        customer text NOT NULL,
        amount numeric(10,2) NOT NULL CHECK (amount > 0)
    )
"""
# The order and its record commit together: one statement, in which the INSERT draws the id itself.
PLACE = """
    WITH placed AS (
        INSERT INTO orders (customer, amount) VALUES (%s, %s) RETURNING id, amount
    )
    SELECT id, stage(id, 'order.create', jsonb_build_object('id', id, 'amount', amount)) FROM placed
"""


if __name__ == "__main__":
    customer, number = sys.argv[1:]
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        for _ in range(int(number)):
            connection.execute(PLACE, [customer, Decimal(random.randint(1, 99_999)) / 100])
