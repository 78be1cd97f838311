"""A wrapper of bytes that nobody shall read: no text that is made of it shows them, and no encoder writes them.

It is no struct, so that msgspec's encoders do not know it. The codecs of events and snapshots name the functions below;
every other encoder fails where it meets a secret, or writes its text.
"""

from typing import Any, Final

HIDDEN: Final = "(hidden)"
"""The text of every secret."""


class Secret:
    """Bytes that are shown to nobody; `value` is the one way to them. Two secrets of the same bytes are equal."""

    __slots__ = ("_value",)

    def __init__(self, value: bytes) -> None:
        self._value = value

    @property
    def value(self) -> bytes:
        """Return the bytes."""
        return self._value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._value == other._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return HIDDEN


def encode_secret(value: Any) -> bytes:
    """Write the bytes of a secret, for a codec whose bytes nobody is shown (`enc_hook` of msgspec)."""
    if isinstance(value, Secret):
        return value.value
    raise NotImplementedError(f"{type(value).__name__} cannot be written")


def decode_secret(kind: type, value: Any) -> Any:
    """Read what `encode_secret` wrote (`dec_hook` of msgspec)."""
    if kind is Secret and isinstance(value, bytes):
        return Secret(value)
    raise NotImplementedError(f"{kind.__name__} cannot be read")
