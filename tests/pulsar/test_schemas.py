"""Schemas: BYTES and STRING are served, and every other one is refused with what to do."""

import pytest

from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.pulsar.schemas import refusal_of

SERVED = ("NoSchema", "String", "AutoConsume")


@pytest.mark.parametrize("name", pb.Schema.Type.keys())
def test_a_schema_is_served_or_refused_in_words(name: str) -> None:
    refusal = refusal_of(pb.Schema(name="order", schema_data=b"{}", type=pb.Schema.Type.Value(name)))
    assert (refusal is None) is (name in SERVED)
    if refusal is not None:
        assert "'order'" in refusal
        assert name.upper() in refusal
        assert "Schema.BYTES" in refusal


def test_no_schema_is_served() -> None:
    assert refusal_of(pb.CommandProducer().schema) is None
