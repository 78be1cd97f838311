"""Random histories of a group of the consumer protocol (KIP-848): the same answers and the same group on both brokers.

Runs as `test_differential.py` does. All members ask for the assignor `range`, whose outcome is determined: of `uniform`
both promise only that it is even and moves few. Subscriptions are never empty: Apache Kafka 4.4 gives partitions to a
member without any, where all others subscribe to the same topics. It decides at once here, as Exacta always does. A
member that joins keeps its instance id: Kafka 4.4 lets one that changes it wait for what it holds itself.
"""

from __future__ import annotations

import itertools
from collections import defaultdict

from hypothesis import note

from exacta.protocol.kafka.errors import ErrorCode
from tests.differential.agree import marks, on_both
from tests.differential.group_brokers import Broker
from tests.differential.group_steps import (
    SEQUENCES,
    Beat,
    Commit,
    Member,
    Read,
    Step,
)

pytestmark = marks

_numbers = itertools.count()


@on_both(SEQUENCES, share=0.2)
def test_consumer_groups(brokers: tuple[Broker, Broker], sequence: list[Step]) -> None:
    group = f"g{next(_numbers)}"
    known: dict[str, Member] = defaultdict(Member)
    for broker in brokers:
        broker.begin(group)
    for step in sequence:
        member = known[step.member] if isinstance(step, Beat | Commit | Read) else Member()
        kafkas, ours = (broker.run(step, member) for broker in brokers)
        note(f"{step}: {ours}")
        assert ours == kafkas, f"{step}: Kafka answers {kafkas}, Exacta {ours}"
        shown = [broker.describe() for broker in brokers]
        assert shown[1] == shown[0], f"after {step} Kafka's group is {shown[0]}, Exacta's {shown[1]}"
        if not isinstance(step, Beat):
            continue
        code, _, epoch, told = ours
        if code == 0 and epoch > 0:
            member.before, member.epoch = member.epoch, epoch
            member.told = member.told if told is None else told
        elif code != ErrorCode.UNRELEASED_INSTANCE_ID:
            member.epoch, member.told = 0, []
