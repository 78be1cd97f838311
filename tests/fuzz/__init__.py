"""Bytes of an attacker before and after the login: they mean the same at each commit and in a long campaign."""
