"""The proof of who a client is: certificates and the names in them."""
