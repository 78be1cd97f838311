"""A fault that nothing has met fails its test, and says which it is; so does a fault that cannot be."""

from pathlib import Path

import pytest
from confluent_kafka import Producer

import exacta
from exacta.testing import FaultNotMet
from exacta.testing.faults import MET_AT, Effect, Fault
from tests.testing.clients import CALL_S, servers


def test_every_effect_has_its_place() -> None:
    assert set(MET_AT) == set(Effect)


def test_a_fault_that_nothing_met_fails_the_test() -> None:
    def forgetful(broker: exacta.Broker) -> None:
        with broker:
            directories.append(broker.data)
            broker.faults.drop_answer("EndTxn")

    directories: list[Path] = []
    broker = exacta.Broker()
    with pytest.raises(FaultNotMet, match=r"^the fault drop_answer\('EndTxn'\) was never met$"):
        forgetful(broker)
    assert not directories[0].exists()
    assert not broker.is_running


def test_a_fault_that_was_met_too_seldom_fails_the_test(broker: exacta.Broker) -> None:
    broker.faults.refuse("Produce", error="MESSAGE_TOO_LARGE", times=3)
    broker.faults.full_disk()
    producer = Producer({**servers(broker), "retries": 0})
    producer.produce("orders", b"v")
    producer.flush(CALL_S)
    with pytest.raises(FaultNotMet) as caught:
        broker.faults.check()
    assert str(caught.value) == (
        "the fault refuse('Produce', error='MESSAGE_TOO_LARGE', times=3) was met 1 of 3 times; "
        "the fault full_disk() was never met"
    )
    broker.faults.check()


def test_a_test_that_fails_for_another_reason_says_that_one() -> None:
    def failing() -> None:
        with exacta.Broker() as broker:
            broker.faults.full_disk()
            _ = 1 / 0

    with pytest.raises(ZeroDivisionError):
        failing()


def test_a_fault_has_happened_before_the_client_goes_on() -> None:
    """The test may look at once."""
    seen: list[bool] = []
    for action in (None, lambda: None):
        fault = Fault(Effect.DROP, "EndTxn", written="", action=action)
        fault.met = 1
        thread = fault.act(lambda: seen.append(fault.happened))  # noqa: B023 - it is called meanwhile
        if thread is not None:
            thread.join()
    assert seen == [True, True]


def test_what_goes_wrong_in_an_action_is_told(broker: exacta.Broker) -> None:
    producer = Producer(servers(broker))
    fault = broker.faults.drop_answer("Produce", then=lambda: 1 / 0)
    producer.produce("orders", b"v")
    assert producer.flush(CALL_S) == 0
    with pytest.raises(ZeroDivisionError) as caught:
        fault.wait(CALL_S)
    assert caught.value.__notes__ == ["in the action of the fault drop_answer('Produce')"]
    with pytest.raises(ZeroDivisionError):
        broker.faults.check()


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda faults: faults.drop_answer("EndTransaction"), "did you mean EndTransactions"),
        (lambda faults: faults.drop_answer("Produce", times=0), "met once or more often, not 0 times"),
        (lambda faults: faults.delay("Fetch", seconds=-1), "nothing takes -1 seconds"),
        (lambda faults: faults.refuse("Produce", error="NOT_LEADER"), "did you mean NOT_LEADER_OR_FOLLOWER"),
        (lambda faults: faults.refuse("Metadata", error="UNKNOWN_SERVER_ERROR"), "is no answer to Metadata"),
    ],
)
def test_wrong_faults_are_refused_at_once(broker: exacta.Broker, call: object, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        call(broker.faults)  # type: ignore[operator]
    broker.faults.check()
