"""Quotas of clients: how they come and go, which of them holds for a client, and the arithmetic of rates."""
