"""The source: which offsets a micro-batch covers, and how tasks read them."""
