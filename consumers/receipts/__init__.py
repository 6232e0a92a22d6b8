"""Receipts: at least once, shared by several workers that are one consumer group of the stream."""
