"""JSON that clients send."""

from typing import TypeVar

from msgspec import DecodeError, json

T = TypeVar("T")


class NoJson(Exception):
    """The bytes are no JSON of the wanted type; the text says why."""


def decode_json(body: bytes, wanted: json.Decoder[T]) -> T:
    """Decode what a client has sent. Raises `NoJson`, also where it is no UTF-8 or nested too deep."""
    try:
        return wanted.decode(body)
    except (DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NoJson(str(error)) from error
