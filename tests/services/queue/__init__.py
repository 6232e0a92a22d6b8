"""The queue of receipts: whose turn it is, who may say what came of it, and what is complete."""
