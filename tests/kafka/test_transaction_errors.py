"""The tables of `website.pages.transaction_errors` are what a broker answers: each cell, over the wire.

With EXACTA_TEST_BROKER=kafka the broker is an Apache Kafka, and `ON_KAFKA` says where its answer is another.
"""

from collections.abc import Iterator

import pytest
from website.pages.transaction_errors import BEFORE, CLASSES, CONCLUDED, PRESENT, STATES, STRANGER

from exacta.kafka.handlers import HANDLERS
from exacta.protocol.kafka.errors import RETRIABLE, ErrorCode
from tests.conformance import brokers
from tests.kafka import transaction_states
from tests.kafka.transaction_states import CALLERS, REQUESTS, answer, can_be, new_topic
from tests.kafka.wire import Wire, front

TABLES = {"present": PRESENT, "before": BEFORE, "stranger": STRANGER}
DONE, STATE = ErrorCode.NONE, ErrorCode.INVALID_TXN_STATE

ENDED_BY_1 = ("committed by 1", "aborted by 1")
ENDED = (*ENDED_BY_1, "committed by 2", "aborted by 2")
ON_KAFKA: dict[tuple[str, str, str], set[ErrorCode]] = {
    # The client must abort, and go on; Kafka's code is fatal to some.
    **{("Produce 11", state, "present"): {STATE} for state in ("empty", *ENDED)},
    **{("TxnOffsetCommit 3", state, "present"): {STATE} for state in ("empty", *ENDED)},
    # After an end of version 1, version 2 begins nothing under the same pair (decision 0011), and its end repeats that.
    **{(request, state, "present"): {DONE} for request in ("Produce 12", "TxnOffsetCommit 5") for state in ENDED_BY_1},
    ("EndTxn 5, commit", "committed by 1", "present"): {STATE},
    ("EndTxn 5, abort", "committed by 1", "present"): {DONE},
    # A client that was told to abort must be able to.
    **{(f"EndTxn {version}, abort", "empty", "present"): {STATE} for version in (1, 4)},
    # Kafka takes whoever has the epoch before for the one whose transaction ended last.
    ("EndTxn 5, commit", "committed by 1", "before"): {DONE},
    ("EndTxn 5, commit", "aborted by 1", "before"): {STATE},
    ("EndTxn 5, abort", "committed by 1", "before"): {STATE},
    ("EndTxn 5, abort", "aborted by 1", "before"): {DONE},
}
"""What Apache Kafka 4.4 may answer as well."""


@pytest.fixture(scope="module", params=["marker"] if brokers.ON_KAFKA else ["marker", "sidecar"])
def wire(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    """A connection to a broker whose topics have this `transaction.buffer`."""
    if brokers.ON_KAFKA:
        with brokers.broker_process(tmp_path_factory.mktemp("kafka")) as broker:
            host, port = broker.bootstrap.split(":")
            wire = Wire((host, int(port)))
            yield wire
            wire.socket.close()
    else:
        with front(transaction_two_phase_commit_enable=True, transaction_buffer=request.param) as running:
            yield running.connect()


@pytest.fixture(scope="module")
def topic(wire: Wire) -> str:
    return new_topic(wire)


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("state", transaction_states.STATES)
def test_every_request_is_answered_as_the_table_says(wire: Wire, topic: str, state: str, caller: str) -> None:
    if brokers.ON_KAFKA and state == "prepared":
        pytest.skip("no released Kafka has it")
    if not can_be(state, caller):
        return
    wrong = {}
    for request in REQUESTS:
        if state == "unknown":
            expected = DONE if request.startswith("InitProducerId") else STRANGER[request][0]
        else:
            expected = TABLES[caller][request][STATES.index(state)]
        allowed = {expected} | (ON_KAFKA.get((request, state, caller), set()) if brokers.ON_KAFKA else set())
        answered = answer(wire, topic, request, state, caller)
        if answered not in allowed:
            wrong[request] = (answered.name, expected.name)
    assert wrong == {}


def test_the_tables_are_total() -> None:
    for table in TABLES.values():
        assert table.keys() == REQUESTS.keys()
        assert all(len(row) == len(STATES) for row in table.values())
    assert {"unknown", *STATES} == transaction_states.STATES.keys()
    for name in REQUESTS:
        api, version = name.split(",")[0].split()
        (handler,) = [each for each in HANDLERS.values() if each.name == api]
        assert handler.min_version <= int(version) <= handler.max_version


def test_every_error_has_its_class_and_none_is_retriable() -> None:
    found = {
        (name.split()[0], code)
        for table in (*TABLES.values(), CONCLUDED)
        for name, row in table.items()
        for code in row
        if code
    }
    assert found == CLASSES.keys()
    assert not {code for _, code in found} & RETRIABLE


def test_an_end_is_never_refused_as_abortable() -> None:
    """A client that aborts would abort again, for ever (KAFKA-19250)."""
    for table in (*TABLES.values(), CONCLUDED):
        for request, row in table.items():
            is_commit = table is CONCLUDED and request.endswith("commit")  # it is aborted, and then it goes on
            assert is_commit or not (request.startswith("EndTxn") and ErrorCode.TRANSACTION_ABORTABLE in row)
