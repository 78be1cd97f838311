"""The envelope: each command has a field of its type's name and number."""

import pytest
from google.protobuf.message import Message

from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.commands import unwrapped, wrapped

COMMANDS = {
    field.name: getattr(pb, field.message_type.name)
    for field in pb.BaseCommand.DESCRIPTOR.fields
    if field.message_type is not None
}


def test_fields_and_types_agree() -> None:
    fields = {field.name: field.number for field in pb.BaseCommand.DESCRIPTOR.fields if field.message_type}
    assert {name.lower(): number for name, number in pb.BaseCommand.Type.items()} == fields
    assert len(set(COMMANDS.values())) == len(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_travels_under_its_name(name: str) -> None:
    command: Message = COMMANDS[name]()
    base = wrapped(command)
    assert (pb.BaseCommand.Type.Name(base.type), unwrapped(base)) == (name.upper(), command)
    assert base.HasField(name)


def test_what_is_no_command_is_not_wrapped() -> None:
    with pytest.raises(KeyError):
        wrapped(pb.KeyValue(key="a", value="b"))
