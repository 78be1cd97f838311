"""Commands of Pulsar's protocol, of every kind, with values that mean something to the broker, or nothing."""

from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.entries import build_batch, build_entry
from exacta.protocol.pulsar.frames import build_entry_frame, build_frame
from exacta.pulsar.handlers import HANDLERS
from tests.fuzz.choices import Choices

_BY_NUMBER = {
    field.number: GetMessageClass(field.message_type)  # type: ignore[arg-type]  # of either implementation
    for field in pb.BaseCommand.DESCRIPTOR.fields
    if field.message_type is not None
}
KINDS = tuple(_BY_NUMBER.values())
"""The class of every command that the protocol has, also those that only a broker sends."""
SERVED = tuple(kind for number, kind in _BY_NUMBER.items() if number in HANDLERS)
"""The class of every command that is served."""
TOPICS = (
    "persistent://public/default/t",
    "t",
    "persistent://public/default/u",
    "persistent://public/default/new",
    "non-persistent://public/default/t",
    "persistent://public/default/t-partition-0",
    "persistent://a/b/c",
    "public/default/t",
    "persistent://pulsar/system/transaction_coordinator_assign-partition-0",
    "__consumer_offsets",
    "",
    "persistent://" + "x/" * 2_000,
    "p\0\n,é",
    "public/default",
    ".*",
    "(" * 500,
    "s",
    "none",
    "token",
)
"""Topics t and u are there; s is a subscription."""
SMALL = (0, 1, 2, 3, 10)
LARGE = ((1 << 63) - 1, (1 << 31) - 1, 1 << 31, 1 << 20, 65_537, (1 << 64) - 1)
_NUMBERS = {
    FieldDescriptor.TYPE_UINT64: 64,
    FieldDescriptor.TYPE_INT64: 63,
    FieldDescriptor.TYPE_UINT32: 32,
    FieldDescriptor.TYPE_INT32: 31,
}
MOST_DEPTH = 4


def command(choices: Choices, kind: type[Message] | None = None) -> bytes:
    """Return the frame of a command of this kind, or of any; it can be read."""
    chosen = kind or choices.pick(KINDS if choices.once_in(12) else SERVED)
    message = _message(choices, chosen)
    if isinstance(message, pb.CommandSend | pb.CommandMessage):
        return b"".join(map(bytes, build_entry_frame(message, _entry(choices))))
    return build_frame(message)


def _entry(choices: Choices) -> Any:
    metadata = _message(choices, pb.MessageMetadata)
    metadata.ClearField("compression")
    payload = choices.bytes(choices.below(32))
    if choices.once_in(3):
        metadata.num_messages_in_batch = 2
        payload = build_batch((_message(choices, pb.SingleMessageMetadata), b"v") for _ in range(2))
    return build_entry(metadata, payload)


def _message(choices: Choices, kind: type[Message], depth: int = 0) -> Any:
    message = kind()
    for field in kind.DESCRIPTOR.fields:
        is_required = field.is_required
        if field.message_type is not None and depth >= MOST_DEPTH and not is_required:
            continue
        if not is_required and choices.once_in(3):
            continue
        nested = None if field.message_type is None else GetMessageClass(field.message_type)  # type: ignore[arg-type]
        if field.is_repeated:
            values = getattr(message, field.name)
            for _ in range((1, 2, 0, 3)[choices.below(4)]):
                values.append(_scalar(choices, field) if nested is None else _message(choices, nested, depth + 1))
        elif nested is not None:
            getattr(message, field.name).CopyFrom(_message(choices, nested, depth + 1))
        else:
            setattr(message, field.name, _scalar(choices, field))
    return message


def _scalar(choices: Choices, field: Any) -> Any:
    if field.type == FieldDescriptor.TYPE_STRING:
        return choices.pick(TOPICS)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return choices.pick((b"", b"{}", b"[" * 10_000, choices.bytes(16), b"x" * 1_000))
    if field.type == FieldDescriptor.TYPE_BOOL:
        return choices.once_in(2)
    if field.type == FieldDescriptor.TYPE_ENUM:
        return choices.pick([each.number for each in field.enum_type.values])
    if field.type in (FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT):
        return choices.pick((0.0, -1.0, float("inf")))
    number = choices.pick(SMALL) if not choices.once_in(4) else choices.pick(LARGE)
    return number & ((1 << _NUMBERS[field.type]) - 1)
