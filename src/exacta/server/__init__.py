"""The composition root: a journal, an engine and a front made into a server."""
