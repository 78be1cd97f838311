"""Error codes against kio's list, which is generated from Apache Kafka's."""

from kio.schema.errors import ErrorCode as KioErrorCode

from exacta.protocol.kafka.errors import RETRIABLE, ErrorCode


def test_names_and_numbers_are_those_of_kafka() -> None:
    assert {code.name: code.value for code in ErrorCode} == {code.name.upper(): int(code) for code in KioErrorCode}
    assert int(ErrorCode.NONE) == 0


def test_retriable_codes_are_those_of_kafka() -> None:
    assert {code.name for code in RETRIABLE} == {code.name.upper() for code in KioErrorCode if code.retriable}
    assert ErrorCode.COORDINATOR_LOAD_IN_PROGRESS in RETRIABLE
    assert ErrorCode.PRODUCER_FENCED not in RETRIABLE
