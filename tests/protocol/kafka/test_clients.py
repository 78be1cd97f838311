"""aiokafka's own request and response classes: old versions that it still speaks must be ours as well.

A third oracle where it counts most: aiokafka chooses the highest version that it has within what the broker offers, and
several of its requests exist in one old version only.
"""

import importlib
import inspect
import pkgutil
from typing import Any

import aiokafka.protocol
import pytest
from aiokafka.protocol import types
from aiokafka.protocol.api import Request, RequestStruct

from exacta.protocol.kafka.apis import API
from exacta.protocol.kafka.codec import decode, encode


def requests() -> list[type[Request]]:
    """Find aiokafka's requests of the APIs that we know."""
    modules = [
        importlib.import_module(f"aiokafka.protocol.{module.name}")
        for module in pkgutil.iter_modules(aiokafka.protocol.__path__)
    ]
    found = {value for module in modules for value in vars(module).values() if inspect.isclass(value)}
    return [each for each in found if issubclass(each, Request) and getattr(each, "API_KEY", None) in API]


STRUCTS = sorted(
    (
        struct
        for request in requests()
        for struct in request._CLASSES  # those among which the client chooses
        if struct.API_VERSION in API[struct.API_KEY].versions
    ),
    key=lambda struct: (struct.API_KEY, struct.API_VERSION, struct.__name__),
)


def value_of(kind: Any) -> Any:
    """Return a value for one of aiokafka's wire types."""
    if isinstance(kind, types.Array):
        return [value_of(kind.array_of)] * 2
    if isinstance(kind, types.Schema):
        return tuple(map(value_of, kind.fields))
    if isinstance(kind, types.String):
        return "abcé"
    return {types.Bytes: b"bytes", types.Boolean: True, types.TaggedFields: {}}.get(kind, 3)


def test_every_request_of_aiokafka_has_a_version_that_we_know() -> None:
    wanted = {request.API_KEY for request in requests()}
    assert wanted == {struct.API_KEY for struct in STRUCTS}
    assert {0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 18, 22, 24, 25, 26, 28} <= wanted


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda struct: struct.__name__)
def test_requests_and_responses_of_aiokafka(struct: type[RequestStruct]) -> None:
    api = API[struct.API_KEY]
    for theirs, ours in ((struct, api.request), (struct.RESPONSE_TYPE, api.response)):
        if theirs.API_VERSION != struct.API_VERSION:
            continue  # some read the response of a newer version as an older one
        values = value_of(theirs.SCHEMA)
        encoded = theirs(*values).encode()
        message = decode(ours, struct.API_VERSION, encoded)
        assert b"".join(encode(message, struct.API_VERSION)) == encoded
