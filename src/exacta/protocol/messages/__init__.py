"""One module per API, named by key: the directory listing is the codec's coverage.

The classes are schema data; `exacta.protocol.schema` says how to read them.
`exacta.protocol.apis.API` finds them by key.
"""
