"""A shop that sells out: stock and orders in a database, and a message for each order, both or neither."""
