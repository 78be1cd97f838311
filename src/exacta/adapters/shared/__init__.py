"""The journal that several brokers share: its tail in a ledger, the rest of it in objects."""
