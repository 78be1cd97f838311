"""OAUTHBEARER: one message with a token, and the answer to one that is refused (RFC 7628, KIP-255).

It reads bytes before a login.
"""

import re
from typing import Final

_NAME = r"(?:[^=,\0\x01]|=2C|=3D)+"
_VALUE = r"[\x21-\x7e \t\r\n]*"
_MESSAGE = re.compile(
    rf"n,(?:a=(?P<other>{_NAME}))?,\x01(?P<pairs>(?:[A-Za-z]+={_VALUE}\x01)+)\x01",
)
_BEARER = re.compile(r"bearer +(?P<token>[A-Za-z0-9\-._~+/]+=*)", re.IGNORECASE)

REFUSED: Final = b'{"status":"invalid_token"}'
"""The answer to a token that is not taken. The client acknowledges it by `ACKNOWLEDGED`, and the login has failed."""
ACKNOWLEDGED: Final = b"\x01"


class BearerError(Exception):
    """The message is not what it must be; the text is one sentence, without the token."""


def parse(message: bytes) -> tuple[str, str]:
    """Return the token of the client's message, and the user that it asks to act for (empty: the token's).

    Extensions (KIP-342) mean nothing here. Raises `BearerError`.
    """
    try:
        found = _MESSAGE.fullmatch(bytes(message).decode())
    except UnicodeDecodeError:
        found = None
    if found is None:
        raise BearerError("its message is malformed")
    pairs = [pair.partition("=")[::2] for pair in found["pairs"].split("\x01") if pair]
    tokens = [_BEARER.fullmatch(value) for name, value in pairs if name == "auth"]
    if len(tokens) != 1 or tokens[0] is None:
        raise BearerError("its message holds no token")
    return tokens[0]["token"], (found["other"] or "").replace("=2C", ",").replace("=3D", "=")
