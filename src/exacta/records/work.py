"""The measure of work on batches, by which it is done on the event loop or on a thread."""

from typing import Final

SHORT_BYTES: Final = 64 << 10
"""The most work, in bytes, that is done on the event loop. It takes about a millisecond."""

_MESSAGE_BYTES: Final = 64
"""The work, in bytes, that a message is beside its own bytes."""


def work_bytes(size: int, message_count: int) -> int:
    """Return the work on this many bytes and messages, in bytes. A few compressed bytes may be very many messages."""
    return size + _MESSAGE_BYTES * message_count
