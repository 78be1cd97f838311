"""A broker of a cluster: its roles, who the others are, and what of a server is one for all of them."""
