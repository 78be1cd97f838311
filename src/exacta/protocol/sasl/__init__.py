"""Logins by SASL (RFC 4422), sans I/O: messages that every wire protocol carries in its own way.

Imports nothing of ours. `scram` is what both sides of SCRAM derive and read, `scram_client` and `scram_server` are the
two sides. `plain` and `bearer` read the one message of PLAIN and of OAUTHBEARER.
"""
