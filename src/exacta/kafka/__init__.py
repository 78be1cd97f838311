"""The Kafka front: connections, one handler per API, rejections as error codes. Never speaks to a journal.

`connection.py` turns bytes into requests and answers into bytes; `handlers/` says which API is served in which versions
(ApiVersions is derived from that table); `errors.py` is the one place where a rejection becomes a number.
"""
