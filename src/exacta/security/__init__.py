"""Who a client is, and what it may do, on whichever door it comes in: logins, tokens, access rules."""
