"""Logins by SASL (RFC 4422), sans I/O: both sides of each mechanism, which every wire protocol carries in its own way.

Imports nothing of ours. `scram` is the client's side of SCRAM and what both sides derive, `scram_server` the other
side, `plain` the one message of PLAIN.
"""
