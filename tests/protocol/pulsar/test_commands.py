"""The envelope: each command has a field of its type's name and number."""

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.commands import enveloped, parse_command, unwrapped

COMMANDS = {
    field.name: getattr(pb, field.message_type.name)
    for field in pb.BaseCommand.DESCRIPTOR.fields
    if field.message_type is not None
}


def test_fields_and_types_agree() -> None:
    fields = {field.name: field.number for field in pb.BaseCommand.DESCRIPTOR.fields if field.message_type}
    assert {name.lower(): number for name, number in pb.BaseCommand.Type.items()} == fields
    assert len(set(COMMANDS.values())) == len(COMMANDS)


VALUES = {FieldDescriptor.TYPE_STRING: "a", FieldDescriptor.TYPE_BYTES: b"a"}


def filled(command: Message) -> Message:
    """Give a message the fields that it must have."""
    for field in command.DESCRIPTOR.fields:
        if field.is_required:
            if field.message_type is not None:
                filled(getattr(command, field.name)).SetInParent()
            else:
                setattr(command, field.name, VALUES.get(field.type, 1))
    return command


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_travels_under_its_name(name: str) -> None:
    command = filled(COMMANDS[name]())
    base = parse_command(enveloped(command))
    assert (pb.BaseCommand.Type.Name(base.type), unwrapped(base)) == (name.upper(), command)
    assert base.SerializeToString() == enveloped(command)


@pytest.mark.parametrize("size", [0, 100, 122, 123, 200, 16_000, 17_000, 3_000_000])
def test_the_size_of_a_command_is_written_as_protobuf_writes_it(size: int) -> None:
    command = pb.CommandError(request_id=1, error=pb.ServerError.UnknownError, message="a" * size)
    assert enveloped(command) == pb.BaseCommand(type=pb.BaseCommand.ERROR, error=command).SerializeToString()


def test_what_is_no_command_has_no_envelope() -> None:
    with pytest.raises(KeyError):
        enveloped(pb.KeyValue(key="a", value="b"))
