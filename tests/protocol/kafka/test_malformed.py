"""No input raises anything but `DecodeError`, nor makes the codec allocate by a length that it has not received."""

import random
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exacta.protocol.kafka.apis import API
from exacta.protocol.kafka.codec import (
    DecodeError,
    RequestHeader,
    decode,
    decode_request,
    decode_request_header,
    decode_response,
    encode,
    encode_request,
)
from exacta.protocol.kafka.schema import Message
from tests.protocol.kafka.samples import SAMPLES, sample
from tests.protocol.kafka.strategies import MESSAGES, message_id
from tests.shares import examples, is_whole, share_of

HUGE_LENGTHS = [b"\x7f\xff\xff\xff", b"\x7f\xff", b"\xff\xff\xff\xff\x07", b"\xff\xff\x03", b"\xff\xff\xff\xff\xff\xff"]
"""INT32 and INT16 lengths, compact lengths up to the largest, and a varint that does not end."""

ALLOWED_BYTES = 64 * 1024
"""What decoding a sample of a few hundred bytes may allocate; the lengths above ask for up to two gigabytes."""

MUTATIONS = 50

every_message = pytest.mark.parametrize(("cls", "version"), MESSAGES, ids=message_id)
fixed = settings(max_examples=examples(300), database=None)


def decode_or_refuse(cls: type[Message], version: int, data: bytes) -> Message | None:
    """Decode; None for what is refused. What is accepted must be a message that can be encoded again."""
    try:
        message = decode(cls, version, data)
    except DecodeError:
        return None
    assert decode(cls, version, b"".join(encode(message, version))) == message
    return message


@every_message
def test_every_truncation_is_refused(cls: type[Message], version: int) -> None:
    encoded = SAMPLES[cls, version]
    assert decode(cls, version, encoded) == sample(cls, version)
    for length in share_of(range(len(encoded))) if encoded else ():
        with pytest.raises(DecodeError):
            decode(cls, version, encoded[:length])


@every_message
def test_mutations_are_refused_or_decoded(cls: type[Message], version: int) -> None:
    encoded = SAMPLES[cls, version]
    refused = 0
    for number in share_of(range(MUTATIONS)):
        dice = random.Random(f"{cls.__name__} {version} {number}")
        mutated = bytearray(encoded)
        for _ in range(dice.choice((1, 1, 2, 5))):
            position = dice.randrange(len(mutated) + 1)
            match dice.randrange(4):
                case 0:
                    mutated[position : position + 1] = dice.randbytes(1)
                case 1:
                    mutated[position : position + 1] = dice.choice((b"\0", b"\1", b"\x7f", b"\x80", b"\xff"))
                case 2:
                    del mutated[position : position + dice.randrange(1, 5)]
                case _:
                    mutated[position:position] = dice.randbytes(dice.randrange(1, 5))
        refused += decode_or_refuse(cls, version, bytes(mutated)) is None
    assert refused or len(encoded) < 40 or not is_whole()


@fixed
@given(st.sampled_from(MESSAGES), st.binary(max_size=60))
def test_random_bytes_are_refused_or_decoded(of: tuple[type[Message], int], data: bytes) -> None:
    decode_or_refuse(*of, data)


@fixed
@given(st.binary(max_size=40))
def test_random_frames_are_refused_or_decoded(frame: bytes) -> None:
    with suppress(DecodeError):
        decode_request(frame, *decode_request_header(memoryview(frame)))
    with suppress(DecodeError):
        decode_response(API[26].response, 3, frame)


@fixed
@given(st.sampled_from(sorted(API)), st.integers(-1, 20), st.binary(max_size=30))
def test_headers_of_any_key_and_version_lead_to_a_message_or_are_refused(key: int, version: int, body: bytes) -> None:
    frame = key.to_bytes(2, "big") + version.to_bytes(2, "big", signed=True) + b"\0\0\0\7\0\2id" + body
    try:
        header, body_start = decode_request_header(memoryview(frame))
    except DecodeError:
        return
    assert header == RequestHeader(key, version, 7, "id")
    with suppress(DecodeError):
        decode_request(frame, header, body_start)


def peak_of(run: Callable[[], object]) -> int:
    """Return the most bytes that were allocated at once during `run`; tracing must be on."""
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    run()
    return tracemalloc.get_traced_memory()[1] - before


@pytest.fixture
def _tracing():
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.usefixtures("_tracing")
@every_message
def test_nothing_is_allocated_by_a_length_that_was_not_received(cls: type[Message], version: int) -> None:
    encoded = SAMPLES[cls, version]
    decode(cls, version, encoded)  # compiles the codec before anything is measured

    def decode_damaged(data: bytes) -> None:
        with suppress(DecodeError):
            decode(cls, version, data)

    for huge in HUGE_LENGTHS:
        for position in share_of(range(0, len(encoded), 1 + len(encoded) // 30)):
            data = encoded[:position] + huge + encoded[position + len(huge) :]
            assert peak_of(partial(decode_damaged, data)) < ALLOWED_BYTES


@pytest.mark.usefixtures("_tracing")
def test_the_measure_notices_an_allocation() -> None:
    assert peak_of(lambda: [None] * ALLOWED_BYTES) > ALLOWED_BYTES


def test_many_tags_end_with_the_bytes_that_hold_them() -> None:
    cls = API[26].request  # EndTxn
    body = b"".join(encode(cls(transactional_id="t"), 3))
    assert body.endswith(b"\0")
    with pytest.raises(DecodeError):
        decode(cls, 3, body[:-1] + b"\xff\xff\xff\xff\x0f" + b"\x63\x00" * 1000)


def test_truncated_request_frames_are_refused() -> None:
    message = sample(API[0].request, 9)
    frame = b"".join(encode_request(message, 9, 7, "client"))[4:]
    header, body_start = decode_request_header(memoryview(frame))
    assert decode_request(frame, header, body_start) == message
    for length in range(len(frame)):
        with pytest.raises(DecodeError):
            decode_request(frame[:length], *decode_request_header(memoryview(frame)[:length]))
