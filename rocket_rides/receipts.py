"""Receipts in SQL, as several services ask; `receipt_state` and `webhook_id` are in the schema."""

# Has the sweep look again at the receipts from a ride on.
SET_BACK = "SELECT set_back_receipts(%s)"
