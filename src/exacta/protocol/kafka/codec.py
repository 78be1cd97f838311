"""The codec's interface: frames and bodies to messages, and messages to buffers.

Owns request and response headers, and the cache of compiled functions. Does not own connections, sizes' limits, or
which versions a broker serves. Sans-I/O.

Theory of operation. A frame is what follows the four-byte size on a connection. `decode_request_header` reads its
header, whatever the API key and version; `decode_request` reads the body. Compiled functions are made at the first use
of a (class, version) and kept for ever; two threads that race make the same function twice.

Bytes after the end of a message are ignored, as Apache Kafka ignores them: clients are tested against that.

It reads bytes before a login.
"""

import struct
from typing import Final, TypeVar

from msgspec import Struct

from exacta.protocol.kafka.apis import API
from exacta.protocol.kafka.decoder import Decoder, compile_decoder
from exacta.protocol.kafka.encoder import Encoder, compile_encoder
from exacta.protocol.kafka.primitives import (
    DECODE_FAULTS,
    ENCODE_FAULTS,
    MAX_STRING_BYTES,
    DecodeError,
    EncodeError,
    TooManyElements,
    UnsupportedVersion,
    read_uvarint,
    skip_tags,
)
from exacta.protocol.kafka.schema import Buffer, Message

__all__ = [
    "Buffer",
    "DecodeError",
    "EncodeError",
    "Message",
    "RequestHeader",
    "TooManyElements",
    "UnsupportedVersion",
    "decode",
    "decode_request",
    "decode_request_header",
    "decode_response",
    "encode",
    "encode_request",
    "encode_response",
]

M = TypeVar("M", bound=Message)

API_VERSIONS_KEY: Final = 18
"""Its responses always have header version 0, so that a client can read them before it knows the broker (KIP-511)."""

UNBOUNDED: Final = 2**62
"""Elements of arrays: from whom one trusts, as many as there are bytes for."""

_REQUEST_HEADER = struct.Struct(">hhih")
"""API key, API version, correlation id, length of the client id."""

_SIZED_REQUEST_HEADER = struct.Struct(">ihhih")
_SIZED_RESPONSE_HEADER = struct.Struct(">ii")
_SIZED_FLEXIBLE_RESPONSE_HEADER = struct.Struct(">iix")
_CORRELATION_ID = struct.Struct(">i")


class RequestHeader(Struct, frozen=True, gc=False):
    """The header of every request; `client_id` is null for clients that do not name themselves."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


_decoders: dict[tuple[type[Message], int], Decoder] = {}
_encoders: dict[tuple[type[Message], int], Encoder] = {}
_flexible_requests: dict[tuple[int, int], bool] = {}
"""Functions by API key and version. Keys and versions that the codec does not know never enter: nobody can fill it."""
_response_headers: dict[tuple[type[Message], int], bool] = {}
"""True if the header of a response has tags."""


def decode_request_header(frame: memoryview) -> tuple[RequestHeader, int]:
    """Read the header of a request; return it and the position of the body.

    For an API key or version that the codec does not know, the header is as good as it can be, which is enough to
    answer UNSUPPORTED_VERSION; `decode_request` then raises `UnsupportedVersion`. Raises `DecodeError`.
    """
    try:
        key, version, correlation_id, length = _REQUEST_HEADER.unpack_from(frame)
        position = _REQUEST_HEADER.size
        client_id = None
        if length >= 0:
            stop = position + length
            if stop > len(frame):
                raise DecodeError(f"client id of {length} bytes exceeds the frame")
            client_id = frame[position:stop].tobytes().decode()
            position = stop
        flexible = _flexible_requests.get((key, version))
        if _is_flexible_request(key, version) if flexible is None else flexible:
            tags = frame[position]
            position += 1
            if tags:
                position = _skip_header_tags(frame, position - 1)
    except DECODE_FAULTS as error:
        raise DecodeError(f"request header: {error}") from error
    return RequestHeader(key, version, correlation_id, client_id), position


def decode_request(frame: Buffer, header: RequestHeader, body_start: int, most_elements: int = UNBOUNDED) -> Message:
    """Decode the body of the request whose header was read.

    Raises `DecodeError`: `UnsupportedVersion`, and `TooManyElements` where its arrays have more in all, among them.
    """
    api = API.get(header.api_key)
    if api is None:
        raise UnsupportedVersion(header.api_key, header.api_version)
    return decode(api.request, header.api_version, frame, body_start, most_elements)


def decode(cls: type[M], version: int, buffer: Buffer, start: int = 0, most_elements: int = UNBOUNDED) -> M:
    """Decode the message of class `cls` that starts at `start`.

    `records` fields are views into `buffer`, everything else is copied out of it. Raises `DecodeError`.
    """
    decoder = _decoders.get((cls, version)) or _decoder(cls, version)
    try:
        message: M = decoder(buffer, start, most_elements)
    except DECODE_FAULTS as error:
        raise DecodeError(f"{cls.__name__} v{version}: {error}") from error
    return message


def decode_response(cls: type[M], version: int, frame: Buffer) -> tuple[int, M]:
    """Decode a response frame; return its correlation id and its body. Raises `DecodeError`."""
    try:
        (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
        position = _CORRELATION_ID.size
        flexible = _response_headers.get((cls, version))
        if _has_flexible_header(cls, version) if flexible is None else flexible:
            tags = frame[position]
            position += 1
            if tags:
                position = _skip_header_tags(frame, position - 1)
    except DECODE_FAULTS as error:
        raise DecodeError(f"response header: {error}") from error
    return correlation_id, decode(cls, version, frame, position)


def encode(message: Message, version: int) -> list[Buffer]:
    """Encode the body: a scatter list in which buffers of record bytes are the message's own.

    Fields that `version` does not have are left out. Raises `EncodeError`.
    """
    cls = type(message)
    encoder = _encoders.get((cls, version)) or _encoder(cls, version)
    try:
        return encoder(message)
    except ENCODE_FAULTS as error:
        raise EncodeError(f"{cls.__name__} v{version}: {error}") from error


def encode_request(message: Message, version: int, correlation_id: int, client_id: str | None) -> list[Buffer]:
    """Encode a request with its size and header. Raises `EncodeError`."""
    body = encode(message, version)
    schema = message.SCHEMA
    name = b"" if client_id is None else client_id.encode()
    if len(name) > MAX_STRING_BYTES:
        raise EncodeError(f"client id of {len(name)} bytes; {MAX_STRING_BYTES} are allowed")
    length = -1 if client_id is None else len(name)
    if version in schema.flexible:
        name += b"\0"
    size = _REQUEST_HEADER.size + len(name) + sum(map(len, body))
    header = _SIZED_REQUEST_HEADER.pack(size, schema.key, version, correlation_id, length)
    return _prepend(header + name, body)


def encode_response(message: Message, version: int, correlation_id: int) -> list[Buffer]:
    """Encode a response with its size and header. Raises `EncodeError`."""
    body = encode(message, version)
    size = len(body[0]) if len(body) == 1 else sum(map(len, body))
    flexible = _response_headers.get((type(message), version))
    if _has_flexible_header(type(message), version) if flexible is None else flexible:
        return _prepend(_SIZED_FLEXIBLE_RESPONSE_HEADER.pack(size + 5, correlation_id), body)
    return _prepend(_SIZED_RESPONSE_HEADER.pack(size + 4, correlation_id), body)


def _is_flexible_request(api_key: int, version: int) -> bool:
    """Say whether the header of such requests has tags; False for an unknown key."""
    api = API.get(api_key)
    if api is None:
        return False
    flexible = version in api.request.SCHEMA.flexible
    if version in api.versions:
        _flexible_requests[api_key, version] = flexible
    return flexible


def _has_flexible_header(cls: type[Message], version: int) -> bool:
    """Say whether the header of such responses has tags."""
    schema = cls.SCHEMA
    flexible = version in schema.flexible and schema.key != API_VERSIONS_KEY
    if version in schema.versions:
        _response_headers[cls, version] = flexible
    return flexible


def _prepend(header: bytes, body: list[Buffer]) -> list[Buffer]:
    """Put `header` before the first buffer, which is never record bytes."""
    body[0] = header + body[0]
    return body


def _skip_header_tags(frame: Buffer, position: int) -> int:
    tags, position = read_uvarint(frame, position)
    return skip_tags(frame, position, len(frame), tags)


def _decoder(cls: type[Message], version: int) -> Decoder:
    schema = cls.SCHEMA
    if version not in schema.versions:
        raise UnsupportedVersion(schema.key, version)
    decoder = _decoders[cls, version] = compile_decoder(cls, version, version in schema.flexible)
    return decoder


def _encoder(cls: type[Message], version: int) -> Encoder:
    schema = cls.SCHEMA
    if version not in schema.versions:
        raise EncodeError(f"{cls.__name__} has no version {version}")
    encoder = _encoders[cls, version] = compile_encoder(cls, version, version in schema.flexible)
    return encoder
