"""Random lives of a broker whose machine stops: what becomes of writes that were answered before their sync."""

import random
from itertools import count
from typing import NamedTuple

from exacta.core.replies import Appended, TransactionEndedReply
from tests.engine.producer import Producer
from tests.engine.rig import Rig, batch


class _Open(NamedTuple):
    """What a client knows of its transaction."""

    number: int
    acknowledged: list[tuple[int, bytes]]


def test_no_commit_is_granted_to_a_transaction_that_lost_a_write() -> None:
    """What a client was told is written is there, whole, once its commit is acknowledged."""
    refused = [_lives(seed) for seed in range(60)]
    assert sum(map(bool, refused)) > 30, "or too seldom a machine stopped while a transaction was open"


def _lives(seed: int) -> int:
    """Play random lives of a broker; return how many commits were refused."""
    chance = random.Random(seed)
    rig = Rig()
    rig.topic()
    names, numbers = ("x", "y", "z"), count()
    producers = {name: Producer(rig, name) for name in names}
    opened: dict[str, _Open] = {}
    committed: list[tuple[int, bytes]] = []
    refused = 0
    for _ in range(150):
        name = chance.choice(names)
        producer = producers[name]
        if chance.random() < 0.06:
            rig.stop_machine(chance.randint(0, rig.storage.unsynced))
        elif chance.random() < 0.06:
            rig.crash(keep_in_flight=chance.random() < 0.5)
        elif chance.random() < 0.2:
            rig.append(b"plain.", chance.randrange(2))
        elif name in opened and chance.random() < 0.25:
            reply = producer.end()
            mine = opened.pop(name)
            if isinstance(reply, TransactionEndedReply):
                committed += mine.acknowledged
            else:
                refused += 1
                producer.init()
        else:
            if name not in opened:
                producer.add(0, 1)
                opened[name] = _Open(next(numbers), [])
            if opened[name].acknowledged and chance.random() < 0.2:  # it has not heard, and sends both once more
                again, text = opened[name].acknowledged[-1]
                number = producer.sequences[again] - 1
                repeat = batch(text, again, producer.pair, number, transactional_id=name)
                rig.submit(repeat, repeat, payloads=[text, text])
            partition = chance.randrange(2)
            payload = f"{name}{opened[name].number}.{len(opened[name].acknowledged)};".encode()
            answers = producer.write(payload, partition)
            for _ in range(chance.randint(1, 3)):
                rig.loop.turn()
            if answers and isinstance(answers[0], Appended):
                opened[name].acknowledged.append((partition, payload))
            else:  # refused, or never answered: this client gives up
                del opened[name]
                producer.init()
    rig.loop.settle()
    for name in opened:
        producers[name].init()
    rig.loop.settle()
    for partition in range(2):
        log = rig.records(partition=partition)
        for where, payload in committed:
            if where == partition:
                assert log.count(payload) == 1, (seed, payload)
    assert committed
    return refused
