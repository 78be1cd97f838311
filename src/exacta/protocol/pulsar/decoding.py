"""Protocol buffers' messages from bytes, so that every fault of the bytes is one exception.

The parser of `protobuf` refuses bytes that are no message of the type, and text that is not UTF-8. It does not look
whether the required fields are there, and it drops values of an enum that it does not know.

It reads bytes before a login.
"""

from typing import TypeAlias, TypeVar

from google.protobuf.message import DecodeError, Message

Buffer: TypeAlias = bytes | bytearray | memoryview

M = TypeVar("M", bound=Message)


def decoded(cls: type[M], data: Buffer) -> M:
    """Read a message, whose required fields are all there. Raises `google.protobuf.message.DecodeError`."""
    message = cls.FromString(data)  # type: ignore[arg-type]  # any buffer will do
    if not message.IsInitialized():
        raise DecodeError(lacking(message))
    return message


def lacking(message: Message) -> str:
    """Say which required fields a message lacks."""
    fields: list[str] = message.FindInitializationErrors()  # type: ignore[attr-defined]  # not in the stubs
    return f"{', '.join(fields)} of {message.DESCRIPTOR.name} is missing"
