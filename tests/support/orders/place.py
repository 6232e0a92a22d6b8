"""`python -m orders.place CUSTOMER NUMBER`: places so many orders, one after another."""

import random
import sys
from decimal import Decimal

from sqlalchemy.orm import Session

from .models import Order, engine

if __name__ == "__main__":
    customer, number = sys.argv[1:]
    with Session(engine()) as session:
        for _ in range(int(number)):
            session.add(Order(customer=customer, amount=Decimal(random.randint(1, 99_999)) / 100))
            session.commit()
