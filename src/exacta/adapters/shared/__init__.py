"""The journal that several brokers share: its tail is in a ledger, the rest of it in objects of an object store."""
