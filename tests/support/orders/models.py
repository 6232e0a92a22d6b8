"""The shop's one table, and its engine."""

import os
import uuid
from datetime import datetime
from decimal import Decimal

from sqlalchemy import DateTime, Engine, Numeric, create_engine, func
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    pass


class Order(Base):
    """An order of a customer's. Never changed. The log's column is none of the model's business."""

    __tablename__ = "orders"

    id: Mapped[uuid.UUID] = mapped_column(primary_key=True, default=uuid.uuid4)
    created_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=func.now())
    customer: Mapped[str]
    amount: Mapped[Decimal] = mapped_column(Numeric(10, 2))


def engine() -> Engine:
    return create_engine(os.environ["DATABASE_URL"].replace("postgresql:", "postgresql+psycopg:"))
