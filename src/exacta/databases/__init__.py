"""A database's rows and the log's messages, both or neither: `exacta.two_phase` (KIP-939, decision 0039).

`two_phase.py` owns the order of the steps and what follows when one fails. `decisions.py` owns the table in the
database that says what was decided. `log.py` is the log's side, `sqlite.py` and `postgres.py` are the databases' sides.
"""
