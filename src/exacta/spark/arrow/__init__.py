"""Rows as Arrow columns, and columns as record batches."""
