"""Authorizers for tests, a broker with resources that they hide, and what answers say of those."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from exacta.ports.authorizer import Operation, Principal, Resource, ResourceKind
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from tests.kafka.access_cases import CASES
from tests.kafka.access_requests import Names
from tests.kafka.subscribing import Subscriber
from tests.kafka.test_topics import create
from tests.kafka.wire import Front, Wire, batch, produce

NONE = ErrorCode.NONE
SEEN, HIDDEN, ABSENT = "seen", "hidden", "absent"
"""The beginnings of names: a resource that clients may use, one that they may not, and one that is not there."""


TOPIC = ErrorCode.TOPIC_AUTHORIZATION_FAILED
GROUP = ErrorCode.GROUP_AUTHORIZATION_FAILED
ID = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


class Rules:
    """Allows what `allowed` says, to everybody."""

    allows_all = False
    terms = None

    def __init__(self, allowed: Callable[[Operation, Resource], bool]) -> None:
        self._allowed = allowed
        self.asked: list[tuple[Operation, Resource]] = []
        self.clients: set[tuple[str, str]] = set()
        """Principal and host of every question."""

    def allows(self, principal: Principal, host: str, operation: Operation, resource: Resource) -> bool:
        """See `Authorizer`."""
        self.asked.append((operation, resource))
        self.clients.add((str(principal), host))
        return self._allowed(operation, resource)


def names(word: str, **known: Any) -> Names:
    return Names(topics=[f"{word}-t"], groups=[f"{word}-g"], transactional_ids=[f"{word}-x"], **known)


def nothing(operation: Operation, resource: Resource) -> bool:
    return False


def but_hidden(operation: Operation, resource: Resource) -> bool:
    return resource.kind is not ResourceKind.CLUSTER and not resource.name.startswith(HIDDEN)


def furnish(broker: Front) -> tuple[Wire, dict[str, bytes], dict[str, tuple[int, int]]]:
    """Make the resources; return a connection, the topics' ids, and who holds the transactional ids."""
    wire = broker.connect()
    ids, bound = {}, {}
    for word in (SEEN, HIDDEN):
        ids[f"{word}-t"] = create(wire, name=f"{word}-t").topic_id
        produce(wire, batch(b"a", b"b"), topic=f"{word}-t")
        Subscriber(broker, topic=f"{word}-t")
    topics = [f"{word}-t" for word in (SEEN, HIDDEN)]
    for word in (SEEN, HIDDEN):
        every = Names(topics=topics, groups=[f"{word}-g"], transactional_ids=[f"{word}-x"])
        wire.ask(CASES[ApiKey.OFFSET_COMMIT].build(8, every), 8)
        request = CASES[ApiKey.INIT_PRODUCER_ID].build(4, every)
        answer = wire.ask(msgspec.structs.replace(request, transaction_timeout_ms=60_000), 4)
        bound[f"{word}-x"] = answer.producer_id, answer.producer_epoch
        every = msgspec.structs.replace(every, bound=bound)
        wire.ask(CASES[ApiKey.ADD_PARTITIONS_TO_TXN].build(3, every), 3)
        for group in (f"{SEEN}-g", f"{HIDDEN}-g"):
            grouped = msgspec.structs.replace(every, groups=[group])
            assert wire.ask(CASES[ApiKey.ADD_OFFSETS_TO_TXN].build(3, grouped), 3).error_code == NONE
    return wire, ids, bound


def rule(broker: Front, rules: Any) -> None:
    broker.on_loop(lambda: setattr(broker.context, "authorizer", rules))


def state_of(broker: Front) -> Any:
    return broker.on_loop(lambda: copy.deepcopy(broker.engine._state))


def structs(value: Any) -> Iterator[Any]:
    """Yield every structure in an answer."""
    if isinstance(value, list | tuple):
        for each in value:
            yield from structs(each)
    elif isinstance(value, msgspec.Struct):
        yield value
        for field in value.__struct_fields__:
            yield from structs(getattr(value, field))


def codes(value: Any) -> set[int]:
    """Return all error codes in an answer, but for NONE."""
    fields = ("error_code", "partition_error_code")
    return {getattr(each, field) for each in structs(value) for field in fields if hasattr(each, field)} - {NONE}


def about(answer: Any, name: str | bytes) -> Any:
    """Return the structure in an answer that has this name, or id."""
    [found, *_] = [
        each
        for each in structs(answer)
        if any(getattr(each, field) == name for field in each.__struct_fields__ if field != "error_message")
    ]
    return found
