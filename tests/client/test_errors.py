"""Error classes, addresses and version bounds."""

import pytest

from exacta.client.apis import Call, usable_version
from exacta.client.deadline import Backoff, Deadline
from exacta.client.errors import ClientError, DeadlineExceeded, ErrorClass, KafkaError, classify
from exacta.client.routing import BadBootstrap, parse_bootstrap
from exacta.protocol.kafka.errors import RETRIABLE, ErrorCode


@pytest.mark.parametrize("code", sorted(RETRIABLE))
def test_what_kafka_calls_retriable_is_repeated(code):
    assert classify(code) is ErrorClass.RETRIABLE


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (ErrorCode.NOT_COORDINATOR, ErrorClass.RETRIABLE),
        (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorClass.RETRIABLE),
        (ErrorCode.INVALID_TXN_STATE, ErrorClass.ABORTABLE),
        (ErrorCode.TRANSACTION_ABORTABLE, ErrorClass.ABORTABLE),
        (ErrorCode.PRODUCER_FENCED, ErrorClass.FATAL),
        (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorClass.FATAL),
        (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, ErrorClass.FATAL),
        (12345, ErrorClass.FATAL),
    ],
)
def test_the_class_of_a_code(code, expected):
    assert classify(code) is expected
    assert KafkaError(code, "x").error_class is expected


def test_an_error_says_what_was_tried():
    assert str(KafkaError(90, "ending it", "too late")) == "ending it: PRODUCER_FENCED (too late)"
    assert str(KafkaError(12345, "ending it")) == "ending it: error code 12345"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a:1", [("a", 1)]),
        (" a:1 , b.c:65535", [("a", 1), ("b.c", 65535)]),
        ("[::1]:9092", [("::1", 9092)]),
    ],
)
def test_addresses(text, expected):
    assert parse_bootstrap(text) == expected


@pytest.mark.parametrize("text", ["", "a", "a:", ":1", "a:0", "a:65536", "a:x", "a:1,,b:2"])
def test_what_is_no_address(text):
    with pytest.raises(BadBootstrap, match="is not host:port"):
        parse_bootstrap(text)


@pytest.mark.parametrize(
    ("offered", "expected"), [((0, 9), 4), ((0, 3), 3), ((4, 9), 4), ((5, 9), None), ((0, 1), None), (None, None)]
)
def test_the_newest_version_of_both_sides(offered, expected):
    assert usable_version(Call(0, object, 2, 4), offered) == expected


def test_a_wait_that_would_pass_the_deadline_is_not_begun():
    cause = ClientError("why")
    with pytest.raises(DeadlineExceeded, match=r"gave up after 0\.001 s: why") as raised:
        Backoff(first_ms=50).wait(Deadline(1), cause)
    assert raised.value.__cause__ is cause
