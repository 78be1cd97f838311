"""What no client should send: frames with a bit turned, cut short, too long, of odd versions, and faulty batches.

The frame of any other step is taken and spoilt in the same place on both sides; compared are all error codes of the
answer, or that the connection was closed. What a turned bit makes of a request may be valid, and then does the same.
"""

from __future__ import annotations

import select
import struct
from dataclasses import dataclass
from typing import Any

import crc32c
from hypothesis import strategies as st
from msgspec import Struct

from exacta.protocol.kafka.apis import API
from exacta.protocol.kafka.codec import decode_response, encode_request
from exacta.protocol.kafka.messages import k00_produce, k15_describe_groups
from tests.differential import members, reads
from tests.differential.calls import HANGS_UP, HOW, WAITS, Answer, Call, name_of, sends
from tests.differential.side import NOT_YET, Side
from tests.differential.steps import CLIENTS, GROUPS, End, Init, Produce, Step, usual
from tests.kafka.wire import Wire, batch

_BODY = 8
"""Bytes of a frame before the client id: API key, version, correlation id. Spoiling those makes it another request."""
_PATIENCE_MS = 2_000
_NOT_YET = {code.name for code in NOT_YET}


@dataclass(frozen=True, kw_only=True, repr=False)
class Spoilt(Step):
    """The frame of a step with a fault: what it is, and where, as a share of the frame."""

    part: Step
    fault: str
    where: float = 0.0
    much: int = 0


@dataclass(frozen=True, kw_only=True, repr=False)
class FaultyBatch(Produce):
    """Produce of a batch, or of several, with a fault."""

    partition: int = 0
    count: int = 2
    fault: str


# --- how they are sent ------------------------------------------------------------------------------------------------


@sends(Spoilt)
def spoilt(side: Side, step: Spoilt) -> Answer:
    """Send the frame on a connection of its own."""
    call = _call(side, step.part)
    frame = bytearray(b"".join(encode_request(call.request, call.version, 1, step.client))[4:])
    version = call.version
    if step.fault == "bit":
        where = _BODY + int(step.where * (len(frame) - _BODY))
        where = min(where, len(frame) - 1)
        # Text stays text: what is no UTF-8 we refuse, and Kafka takes with its own characters in it.
        frame[where] ^= 1 << (step.much % 7 if chr(frame[where]).isprintable() else step.much)
    elif step.fault == "short":
        del frame[_BODY + int(step.where * (len(frame) - _BODY)) :]
    elif step.fault == "long":
        frame += b"\x7f" * (1 + step.much)
    elif step.fault == "tag":  # the last byte of a flexible version says that there are no tags
        frame[-1:] = b"\x01\x7f\x01\x00"
    elif step.fault == "version":
        version = -1 if step.much == 0 else 99
        frame[2:4] = struct.pack(">h", version)
    response = API[call.request.SCHEMA.key].response
    # What waits for nobody may still take a moment: a look-up by time reads the disk.
    patience_ms = 0 if side.may_wait and call.parks else _PATIENCE_MS
    answer = _sent(side, bytes(frame), response, version, patience_ms)
    while _NOT_YET.intersection(answer):
        answer = _sent(side, bytes(frame), response, version, patience_ms)
    side.parts = [(step.part, answer)]  # for what may differ of that, may differ of this
    if isinstance(step.part, Init | End):  # which may have made a pair that nobody has noted
        anew = Init(client=step.part.client, version=4)
        side.parts.append((anew, side.send(side.note(anew, _call(side, anew)), anew.client)))
    return answer


def _call(side: Side, step: Step) -> Call:
    call = HOW[type(step)](side, step)
    assert isinstance(call, Call)
    return call


def _sent(side: Side, frame: bytes, response: Any, version: int, patience_ms: int) -> Answer:
    wire = Wire(side.address)
    try:
        _ask_behind(side, wire)
        wire.socket.sendall(struct.pack(">i", len(frame)) + frame)
        for _ in range(2):
            _ask_behind(side, side.wire)
        poll = select.poll()
        poll.register(wire.socket, select.POLLIN)
        if not poll.poll(patience_ms):
            return (WAITS,)
        answer = wire.receive_frame()
    except ConnectionError:
        return (HANGS_UP,)
    finally:
        wire.socket.close()
    codes = tuple(name_of(code) for code in _codes(decode_response(response, version, answer)[1]))
    side.settle()
    return (max(codes, default="NONE"), *codes)


def _ask_behind(side: Side, wire: Wire) -> None:
    wire.ask(k15_describe_groups.DescribeGroupsRequest(groups=[side.group(group) for group in GROUPS]), 0)


def _codes(part: Any) -> list[int]:
    """Return all error codes of a message, in order.

    Those of partitions are in the order of their numbers: Kafka's is a hash's, of a topic of another name each time.
    """
    if isinstance(part, list):
        return [code for each in sorted(part, key=_number_of_partition) for code in _codes(each)]
    if not isinstance(part, Struct):
        return []
    found: list[int] = []
    for name in part.__struct_fields__:
        value = getattr(part, name)
        found += [value] if name.endswith("error_code") else _codes(value)
    return found


def _number_of_partition(part: Any) -> int:
    return int(getattr(part, "partition_index", 0))


@sends(FaultyBatch)
def faulty_batch(side: Side, step: FaultyBatch) -> Answer:
    """Send a Produce that is whole, with something wrong inside."""
    request = _FAULTS[step.fault](side, step)
    reply = side.wire.ask(request, step.version)
    while NOT_YET.intersection(_codes(reply)):
        reply = side.wire.ask(request, step.version)
    codes = tuple(sorted(name_of(code) for code in _codes(reply)))
    return (codes[0] if codes else "NONE", *codes)


_OFFSETS = {
    "length": 8,
    "leader epoch": 12,
    "magic": 16,
    "attributes": 21,
    "delta": 23,
    "first time": 27,
    "last time": 35,
}
_OFFSETS |= {"producer id": 43, "epoch": 51, "sequence": 53, "count": 57}
_FORMS = {"length": ">i", "leader epoch": ">i", "magic": ">b", "attributes": ">h", "delta": ">i", "first time": ">q"}
_FORMS |= {"last time": ">q", "producer id": ">q", "epoch": ">h", "sequence": ">i", "count": ">i"}


def _batch(side: Side, step: FaultyBatch, **changed: int) -> bytes:
    """Return the client's next batch of two records, with fields of its header changed and the checksum right."""
    pair = side.pair(step.client, step.age)
    made = bytearray(
        batch(
            b"0",
            b"1",
            producer_id=pair[0],
            producer_epoch=pair[1],
            base_sequence=side.next_sequence.get((step.client, pair, 0), 0),
            transactional=step.transactional,
            timestamp_ms=side.next_timestamp_ms(),
        )
    )
    for name, value in changed.items():
        field = name.replace("_", " ")
        struct.pack_into(_FORMS[field], made, _OFFSETS[field], value)
    struct.pack_into(">I", made, 17, crc32c.crc32c(bytes(made[21:])))
    return bytes(made)


def _request(side: Side, step: FaultyBatch, *records: bytes | None, **changed: Any) -> k00_produce.ProduceRequest:
    index = changed.pop("index", 0)
    data = [k00_produce.PartitionProduceData(index=index, records=each) for each in records]
    topic = changed.pop("topic", side.topic)
    fields: dict[str, Any] = {"transactional_id": side.transactional_id(step.client), "acks": -1, "timeout_ms": 10_000}
    topics = [k00_produce.TopicProduceData(name=topic, partition_data=data)]
    return k00_produce.ProduceRequest(**(fields | {"topic_data": topics} | changed))


def _header(**changed: int) -> Any:
    return lambda side, step: _request(side, step, _batch(side, step, **changed))


def _with(**changed: Any) -> Any:
    return lambda side, step: _request(side, step, _batch(side, step), **changed)


def _bytes(spoil: Any) -> Any:
    return lambda side, step: _request(side, step, spoil(_batch(side, step)))


_TRANSACTIONAL = 0x10
_FAULTS: dict[str, Any] = {
    "magic 0": _header(magic=0),
    "magic 1": _header(magic=1),
    "magic 3": _header(magic=3),
    "magic -1": _header(magic=-1),
    "a checksum that is wrong": _bytes(lambda made: made[:-1] + bytes([made[-1] ^ 1])),
    "a control batch": _header(attributes=0x20 | _TRANSACTIONAL),
    "a control batch outside transactions": _header(attributes=0x20),
    "codec 5": _header(attributes=5 | _TRANSACTIONAL),
    "codec 7": _header(attributes=7 | _TRANSACTIONAL),
    "log append time": _header(attributes=8 | _TRANSACTIONAL),
    "a delete horizon": _header(attributes=0x40 | _TRANSACTIONAL),
    "unknown attributes": _header(attributes=0x1000 | _TRANSACTIONAL),
    "no records": _header(count=0, delta=-1),
    "fewer than none": _header(count=-1, delta=-2),
    "a count that is no delta": _header(count=3),
    "a delta that is no count": _header(delta=5),
    "a length that is short": _header(length=60),
    "a length that is long": _header(length=200),
    "a length below a header's": _header(length=10),
    "a negative length": _header(length=-1),
    "no sequence": _header(sequence=-1),
    "a negative sequence": _header(sequence=-7),
    "no epoch": _header(epoch=-1),
    "no producer id": _header(producer_id=-1),
    "no producer at all": _header(producer_id=-1, epoch=-1, sequence=-1),
    "no producer outside transactions": _header(producer_id=-1, epoch=-1, sequence=-1, attributes=0),
    "a sequence of no producer's": _header(producer_id=-1, epoch=-1, attributes=0),
    "another leader epoch": _header(leader_epoch=7),
    "no time": _header(first_time=-1, last_time=-1),
    "a highest time that is none": _header(last_time=-1),
    "a highest time that is none of a record's": _header(last_time=1 << 62),
    "more records than there are": _header(count=3, delta=2),
    "fewer records than there are": _header(count=1, delta=0),
    "two batches": lambda side, step: _request(side, step, _batch(side, step) + _batch(side, step)),
    "half a batch behind": _bytes(lambda made: made + made[:20]),
    "half a batch": _bytes(lambda made: made[:40]),
    "some bytes": lambda side, step: _request(side, step, b"\0" * 5),
    "empty": lambda side, step: _request(side, step, b""),
    # Not null: Kafka fails over it, and never answers.
    "a partition twice": lambda side, step: _request(side, step, _batch(side, step), _batch(side, step)),
    "no partitions": lambda side, step: _request(side, step),
    "no topics": _with(topic_data=[]),
    "acks 2": _with(acks=2),
    "acks -2": _with(acks=-2),
    "no transactional id": _with(transactional_id=None),
    "an empty transactional id": _with(transactional_id=""),
    "a transactional id of nobody's": _with(transactional_id="nobody"),
    "partition -1": _with(index=-1),
    "partition 7": _with(index=7),
    "a topic that there is not": _with(topic="nothing"),
    "a topic of an illegal name": _with(topic="no/thing"),
    "a topic without a name": _with(topic=""),
}

# --- sequences --------------------------------------------------------------------------------------------------------

_client = st.sampled_from(CLIENTS)
_any = st.one_of(usual, members.steps, reads.reading.filter(lambda step: not isinstance(step, reads.Fetch)))

_spoilt = st.one_of(
    st.builds(
        Spoilt,
        client=_client,
        version=st.just(0),
        part=_any,
        fault=st.sampled_from(["bit", "bit", "bit", "short"]),
        where=st.floats(0, 1),
        much=st.integers(0, 7),
    ),
    st.builds(
        Spoilt,
        client=_client,
        version=st.just(0),
        part=_any,
        fault=st.sampled_from(["long", "tag", "version"]),
        much=st.integers(0, 3),
    ),
)
_faulty = st.builds(
    FaultyBatch,
    client=_client,
    version=st.integers(3, 12),
    fault=st.sampled_from(sorted(_FAULTS)),
    transactional=st.booleans(),
)

sequences = st.lists(st.one_of(usual, usual, _spoilt, _faulty), min_size=1, max_size=15)
"""What clients do, and some of it spoilt."""
