"""One module per API, named by key: the directory listing is the codec's coverage.

The classes are schema data; `exacta.protocol.kafka.schema` says how to read them.
`exacta.protocol.kafka.apis.API` finds them by key.
"""
