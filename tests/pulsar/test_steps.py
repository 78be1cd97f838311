"""For every command of Apache Pulsar's the largest one is served in steps: no turn does most of its work."""

import pytest

from exacta.core.commands import CreateTopic
from exacta.engine import log_reader
from exacta.protocol.pulsar import frames
from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.pulsar.handlers import HANDLERS
from tests.attacks.commands import TRIVIAL, commands, setting_up
from tests.attacks.counted import Counter
from tests.pulsar.by_hand import Broker

ENTRIES, SIZE = 1_200, 200_000
FEW_CALLS = 40_000
MOST_IN_A_TURN = 0.55


def test_every_command_has_its_largest_form_or_a_reason_why_that_is_small() -> None:
    attacked = {attack.type for attack in commands()}
    assert attacked | TRIVIAL.keys() == HANDLERS.keys()
    assert not attacked & TRIVIAL.keys()
    assert all(TRIVIAL.values())


def create_topics(broker: Broker, count: int) -> None:
    for number in range(count):
        create = CreateTopic(topic=f"topic-{number}", topic_id=number.to_bytes(16, "big"), partition_count=1)
        broker.engine.submit((create,), lambda answers: None)
    compacted = CreateTopic(
        topic="compacted", topic_id=bytes(range(16)), partition_count=1, configs={"cleanup.policy": "compact"}
    )
    broker.engine.submit((compacted,), lambda answers: None)
    broker.settle()


def test_no_turn_does_most_of_the_work_on_a_large_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_reader, "MOST_BATCHES", 300)
    broker = Broker()
    create_topics(broker, 3_200)
    client = broker.connect()
    monkeypatch.setattr(frames, "LARGEST_COMMAND", 1 << 30)  # of answers, which are not bounded so
    client.send_bytes(b"".join(setting_up(ENTRIES)))
    broker.settle()
    [ledger] = {each.message_id.ledger_id for each in client.answers() if isinstance(each, pb.CommandSendReceipt)}
    counter = Counter(broker.loop, broker.context.memory)
    too_much = []
    for attack in commands(ENTRIES, 300, SIZE):
        client.send_bytes(b"".join(attack.frames(ledger)))
        work = counter.work()
        assert not client.closed, attack.asks
        client.answers()
        if work.most > max(FEW_CALLS, MOST_IN_A_TURN * work.total) and not attack.is_one_step:
            too_much.append((pb.BaseCommand.Type.Name(attack.type), attack.asks, work))
    assert not too_much
