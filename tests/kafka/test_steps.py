"""For every API the largest request is served in steps: no turn of the loop does most of its work."""

from typing import Any

import pytest

from exacta.config.security import STANDARD_AUTHORIZER
from exacta.kafka.handlers import HANDLERS
from exacta.protocol.kafka.apis import ApiKey
from tests.attacks.counted import Counter
from tests.attacks.largest import TRIVIAL, attacks
from tests.attacks.requests import setting_up
from tests.kafka.by_hand import Broker

ON: dict[str, Any] = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}

COUNT = 1_600
"""So many things are named: three times what any API serves in one step, and more."""
FEW_CALLS = 5_000
MOST_IN_A_TURN = 0.55


def test_every_api_has_its_largest_request_or_a_reason_why_that_is_small() -> None:
    attacked = {ApiKey(attack.key) for attack in attacks(10, 10, 10, 1)}
    assert attacked | TRIVIAL.keys() == {ApiKey(key) for key in HANDLERS}
    assert not attacked & TRIVIAL.keys()
    assert all(TRIVIAL.values())


@pytest.mark.parametrize("options", [{}, ON], ids=["open", "closed"])
def test_no_turn_does_most_of_the_work_on_a_large_request(options: dict[str, Any]) -> None:
    broker = Broker(**{"message.max.bytes": 64 << 20} | options)
    client = broker.connect()
    broker.ask(client, setting_up(), 7)
    counter = Counter(broker.loop, broker.context.memory)
    too_much = []
    for attack in attacks(COUNT, COUNT, COUNT, 1):
        if client.closed:  # by the request before, which is refused so
            client = broker.connect()
        client.send(attack.request(), attack.version)
        work = counter.work()
        client.received.clear()
        if work.most > max(FEW_CALLS, MOST_IN_A_TURN * work.total) and not attack.is_one_step:
            too_much.append((attack.asks, work))
    assert not too_much
