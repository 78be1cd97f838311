"""Every phase of a group has the name that Apache Kafka gives it (`ClassicGroupState`, `ConsumerGroupState`)."""

from exacta.core.values.classic_groups import Phase
from exacta.core.values.consumer_groups import GroupPhase
from exacta.kafka.group_states import CLASSIC_STATES, CONSUMER_STATES


def test_every_phase_has_a_name() -> None:
    assert set(CLASSIC_STATES) == set(Phase)
    assert set(CONSUMER_STATES) == set(GroupPhase)
    assert set(CLASSIC_STATES.values()) == {"Empty", "PreparingRebalance", "CompletingRebalance", "Stable"}
    assert set(CONSUMER_STATES.values()) == {"Empty", "Assigning", "Reconciling", "Stable"}
