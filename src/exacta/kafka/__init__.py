"""The Kafka front: requests and their order, one handler per API, rejections as error codes. It knows no journal.

`connection.py` turns frames into requests and answers into frames; `exacta.front` has what all fronts share.
`handlers/` says which API is served in which versions (ApiVersions is derived from that table); `errors.py` is the one
place where a rejection becomes a number.
"""
