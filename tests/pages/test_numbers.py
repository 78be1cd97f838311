"""The page about the numbers that clients write names every one of them, so that none is relied on unseen."""

import re

import pytest
from google.protobuf.descriptor import FieldDescriptor

from exacta.protocol.kafka.records import BatchHeader
from exacta.protocol.pulsar import messages_pb2 as pb
from tests.pages.blocks import ROOT

NUMBERS = {
    FieldDescriptor.CPPTYPE_INT32,
    FieldDescriptor.CPPTYPE_INT64,
    FieldDescriptor.CPPTYPE_UINT32,
    FieldDescriptor.CPPTYPE_UINT64,
}
PAGE = (ROOT / "docs" / "reference" / "numbers.md").read_text()
NAMED = {
    name for line in PAGE.splitlines() if line.startswith("|") for name in re.findall(r"`(\w+)`", line.split("|")[1])
}


def test_each_number_of_the_header_of_a_batch_is_named() -> None:
    assert set(BatchHeader.__struct_fields__) <= NAMED


@pytest.mark.parametrize("message", [pb.MessageMetadata, pb.SingleMessageMetadata, pb.CommandSend])
def test_each_number_of_an_entry_is_named(message: type[pb.MessageMetadata]) -> None:
    numbers = {each.name for each in message.DESCRIPTOR.fields if each.cpp_type in NUMBERS}
    assert numbers <= NAMED
