"""The proof of who a client is, and the rules for what it may do; what fronts and doors share of both."""
