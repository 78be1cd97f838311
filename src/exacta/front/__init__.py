"""The machinery that every protocol's front shares: connections, budgets of memory, the broker behind all fronts.

A front derives its connection from `connection.py`, its request from `request.py` and its broker from `broker.py`.
Nothing here knows a protocol.
"""
