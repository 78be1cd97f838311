"""The pages of the reference that are made from code; `python -m website.pages` writes them all (`make docs`)."""
