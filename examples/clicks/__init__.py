"""A FastStream app: clicks are made clean and passed on."""
