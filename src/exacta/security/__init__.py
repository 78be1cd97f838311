"""Who a client is, and what proves it: certificates and the names in them."""
