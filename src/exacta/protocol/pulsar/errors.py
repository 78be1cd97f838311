"""Errors in the bytes that the other side has sent."""

from exacta.protocol.pulsar.messages_pb2 import ServerError


class BrokenFrame(Exception):
    """Bytes that are no frame, or a frame that is no command: nothing more can be read of this connection."""


class BrokenEntry(Exception):
    """An entry that must not be stored, in a frame that is sound; `error` is what SEND_ERROR says of it.

    The Go client closes its connection and sends everything again for any error but NotAllowedError. That is right
    where the checksum is wrong, and an endless loop where the entry is.
    """

    def __init__(self, message: str, error: ServerError = ServerError.NotAllowedError) -> None:
        super().__init__(message)
        self.error = error


class LargeMetadata(BrokenEntry):
    """The metadata of a message in a batch are larger than they may be."""
