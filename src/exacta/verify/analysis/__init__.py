"""The analysis turns a history into anomalies. It is pure: without I/O, clock or randomness.

`ledger.py` folds the history into tables, `checks_*.py` and `cycles.py` hold a rule each against the tables, and
`verdict.py` runs them all.
"""
