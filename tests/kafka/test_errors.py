"""Rejections as error codes: nothing is forgotten, and what clients make of a code is what we mean."""

import pytest

from exacta.core.rejections import Rejection
from exacta.core.replies import DONE
from exacta.kafka.errors import AT_LEAST, BELOW, CANNOT_HAPPEN_HERE, CODES, error_code
from exacta.kafka.handlers import HANDLERS
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import RETRIABLE, ErrorCode


@pytest.mark.parametrize("rejection", list(CODES))
def test_every_rejection_has_a_code_for_every_api_and_version(rejection: Rejection) -> None:
    for key, handler in HANDLERS.items():
        for version in range(handler.min_version, handler.max_version + 1):
            code = error_code(rejection, ApiKey(key), version)
            assert code not in (ErrorCode.NONE, ErrorCode.UNKNOWN_SERVER_ERROR)


def test_a_reply_is_no_error() -> None:
    assert error_code(DONE, ApiKey.HEARTBEAT, 0) is ErrorCode.NONE


def test_the_table_is_total_and_names_nothing_else() -> None:
    assert set(CODES) | CANNOT_HAPPEN_HERE == set(Rejection)
    assert not set(CODES) & CANNOT_HAPPEN_HERE


@pytest.mark.parametrize("key", [key for key, _ in [*BELOW, *AT_LEAST]])
def test_exceptions_speak_of_apis_that_are_served(key: ApiKey) -> None:
    assert key in HANDLERS


@pytest.mark.parametrize(
    ("key", "version", "code"),
    [
        (ApiKey.INIT_PRODUCER_ID, 3, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ApiKey.INIT_PRODUCER_ID, 4, ErrorCode.PRODUCER_FENCED),
        (ApiKey.ADD_PARTITIONS_TO_TXN, 1, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ApiKey.ADD_PARTITIONS_TO_TXN, 2, ErrorCode.PRODUCER_FENCED),
        (ApiKey.ADD_OFFSETS_TO_TXN, 1, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ApiKey.ADD_OFFSETS_TO_TXN, 2, ErrorCode.PRODUCER_FENCED),
        (ApiKey.END_TXN, 1, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ApiKey.END_TXN, 2, ErrorCode.PRODUCER_FENCED),
        (ApiKey.TXN_OFFSET_COMMIT, 4, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ApiKey.PRODUCE, 11, ErrorCode.INVALID_PRODUCER_EPOCH),
    ],
)
def test_fenced_is_said_in_words_that_the_version_knows(key: ApiKey, version: int, code: ErrorCode) -> None:
    assert error_code(Rejection.PRODUCER_FENCED, key, version) is code


@pytest.mark.parametrize(
    ("key", "version", "code"),
    [
        (ApiKey.PRODUCE, 3, ErrorCode.TRANSACTION_ABORTABLE),
        (ApiKey.PRODUCE, 11, ErrorCode.TRANSACTION_ABORTABLE),
        (ApiKey.TXN_OFFSET_COMMIT, 0, ErrorCode.ILLEGAL_GENERATION),
        (ApiKey.TXN_OFFSET_COMMIT, 3, ErrorCode.ILLEGAL_GENERATION),
        (ApiKey.TXN_OFFSET_COMMIT, 4, ErrorCode.TRANSACTION_ABORTABLE),
    ],
)
def test_a_begin_that_a_crash_forgot_is_abortable(key: ApiKey, version: int, code: ErrorCode) -> None:
    assert error_code(Rejection.TRANSACTION_NOT_BEGUN, key, version) is code


@pytest.mark.parametrize("rejection", list(CODES))
def test_an_end_of_transaction_is_never_refused_as_abortable(rejection: Rejection) -> None:
    """A client that aborts would try to abort again, for ever (KAFKA-19250).

    One rejection is for commits alone, after the other side has aborted a joint transaction.
    """
    if rejection is Rejection.TRANSACTION_ABORTABLE:
        return  # `core/transactions/conclusion.py` has the table, and a test sweeps it
    for version in range(HANDLERS[ApiKey.END_TXN].max_version + 1):
        assert error_code(rejection, ApiKey.END_TXN, version) is not ErrorCode.TRANSACTION_ABORTABLE


@pytest.mark.parametrize("rejection", [r for r in CODES if CODES[r] in RETRIABLE])
def test_only_what_may_pass_by_itself_is_retriable(rejection: Rejection) -> None:
    assert rejection in {
        Rejection.UNKNOWN_TOPIC_OR_PARTITION,
        Rejection.UNKNOWN_TOPIC_ID,
        Rejection.INCONSISTENT_TOPIC_ID,
        Rejection.STORAGE_ERROR,
        Rejection.DISK_FULL,
        Rejection.RESERVE_USED_UP,
        Rejection.CONCURRENT_TRANSACTIONS,  # only to a request of our own: its transaction may end meanwhile
    }
