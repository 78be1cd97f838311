"""`broker.faults`: the calls by which a test asks for a fault, one line each.

There are two kinds of calls. The first kind arms a fault that a later request, write or sync meets. It returns the
`Fault`, which can be waited for, and which must be met before the test ends. The second kind is done when the call
returns: a producer is fenced, a transaction expires, a group begins to rebalance.
"""

import shlex
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Protocol, TypeVar

from exacta.client.errors import KafkaError
from exacta.client.routing import Client
from exacta.client.transactions import init_producer_id
from exacta.core.commands import AlterScramKeys, Command, CreateAcls, DeleteAcls, ExpireTransaction
from exacta.core.queries.open_transactions import ended_by_time
from exacta.core.values.acl import Acl, AclFilter, PatternFilter
from exacta.core.values.scram import ScramAlteration
from exacta.kafka.handlers import HANDLERS
from exacta.ports.log import Log
from exacta.protocol.kafka.errors import ErrorCode
from exacta.readmodel.transactions import Explanation
from exacta.spelling import did_you_mean
from exacta.testing.access import acls_of
from exacta.testing.faults import DISK, Armed, Effect, Fault
from exacta.testing.faulty_connection import refusable
from exacta.testing.rebalancing import rebalance

T = TypeVar("T")
Action = Callable[[], object]


class FaultyBroker(Protocol):
    """The broker, as far as faults need it."""

    def client(self) -> Client:
        """Return a client of the test kit."""

    def explain(self, transactional_id: str) -> Explanation:
        """Return where a transactional id stands."""

    def in_engine(self, step: Callable[[Log], T]) -> T:
        """Take a step on the broker's thread, and return its result when the state after it is durable."""

    def restart(self, *, clean: bool = True) -> object:
        """Stop and start again."""

    def give_back(self, commands: Sequence[Command]) -> None:
        """Let commands be decided now, or with the next start."""


class RequestFaults:
    """The faults of requests and answers, wherever these are met. `apis` are the names of those that may be."""

    def __init__(self, armed: Armed, apis: Collection[str]) -> None:
        self._armed = armed
        self._apis = apis

    def check(self) -> None:
        """Raise FaultNotMet if a fault is armed that nothing has met; nothing is armed then."""
        __tracebackhide__ = True
        self._armed.check()

    def clear(self) -> None:
        """Disarm all faults."""
        self._armed.clear()

    def drop_answer(self, api: str, *, times: int = 1, then: Action | None = None) -> Fault:
        """Let the broker carry out a request and not tell: the connection closes in place of the answer.

        `api` is Kafka's name of the request, such as "EndTxn". `then` runs in between: after the request was carried
        out, and before the client sees the connection closed. It may kill or restart the broker.
        """
        return self._add(Effect.DROP, api, f"drop_answer({api!r}{_times(times)})", times=times, action=then)

    def cut_connection(self, api: str, *, times: int = 1, then: Action | None = None) -> Fault:
        """Lose a request before the broker carries it out: the connection closes. See `drop_answer` for `then`."""
        return self._add(Effect.CUT, api, f"cut_connection({api!r}{_times(times)})", times=times, action=then)

    def delay(self, api: str, *, seconds: float, times: int = 1) -> Fault:
        """Let the answer to a request leave so much later; those that come after it on its connection wait as well."""
        written = f"delay({api!r}, seconds={seconds:g}{_times(times)})"
        return self._add(Effect.DELAY, api, written, times=times, seconds=seconds)

    def _add(
        self,
        effect: Effect,
        api: str,
        written: str,
        *,
        times: int,
        seconds: float = 0.0,
        error_code: int = 0,
        action: Action | None = None,
    ) -> Fault:
        if api not in self._apis:
            near = did_you_mean(api, self._apis)
            raise ValueError(f"{written}: no request that is served has this name{near and ', ' + near}")
        fault = Fault(effect, api, written=written, times=times, seconds=seconds, error_code=error_code, action=action)
        return self._armed.add(fault)


class Faults(RequestFaults):
    """The faults of one embedded broker."""

    def __init__(self, broker: FaultyBroker, armed: Armed) -> None:
        super().__init__(armed, [handler.name for handler in HANDLERS.values()])
        self._broker = broker
        self._revoked: list[Command] = []
        """The commands that give back what was revoked."""

    def clear(self) -> None:
        """Disarm all faults, and give back what was revoked."""
        super().clear()
        revoked, self._revoked = self._revoked, []
        if revoked:
            self._broker.give_back(revoked)

    def refuse(self, api: str, *, error: str, times: int = 1) -> Fault:
        """Answer a request with an error code, and do not carry it out; `error` is Kafka's name of it.

        Each topic, partition or group that the request names is answered so, if the answer speaks of each.
        """
        written = f"refuse({api!r}, error={error!r}{_times(times)})"
        if error not in ErrorCode.__members__ or error == "NONE":
            near = did_you_mean(error, ErrorCode.__members__)
            raise ValueError(f"{written}: Kafka has no error of this name{near and ', ' + near}")
        if api in self._apis and api not in refusable():
            raise ValueError(f"{written}: an error code is no answer to {api}; there is cut_connection({api!r})")
        return self._add(Effect.REFUSE, api, written, times=times, error_code=ErrorCode[error])

    # --- the disk -----------------------------------------------------------------------------------------------------

    def slow_disk(self, *, seconds: float, times: int = 1) -> Fault:
        """Let a sync of the journal take so much longer."""
        written = f"slow_disk(seconds={seconds:g}{_times(times)})"
        return self._armed.add(Fault(Effect.SLOW, DISK, written=written, times=times, seconds=seconds))

    def full_disk(self) -> Fault:
        """Let the next write to the journal find no space. The broker stops then, as the real one does.

        There is space again afterwards: `broker.restart(clean=False)` goes on.
        """
        return self._armed.add(Fault(Effect.FULL, DISK, written="full_disk()"))

    def crash_at_next_sync(self, *, restart: bool = True) -> Fault:
        """Let the broker crash when it is about to sync: what it has written is not acknowledged.

        It starts again by itself, as a supervisor lets it, unless `restart` is False: then a test starts it again by
        `broker.restart(clean=False)`.
        """
        written = "crash_at_next_sync()" if restart else "crash_at_next_sync(restart=False)"
        action = (lambda: self._broker.restart(clean=False)) if restart else None
        return self._armed.add(Fault(Effect.CRASH, DISK, written=written, action=action))

    # --- at once ------------------------------------------------------------------------------------------------------

    def fence(self, transactional_id: str) -> None:
        """Fence the producer of a transactional id, as a second instance of the program does; abort its transaction.

        Raises ValueError if nobody has the transactional id.
        """
        unknown = f"fence({transactional_id!r}): no producer has this transactional id"
        try:
            found = self._broker.explain(transactional_id)
        except KafkaError as error:
            raise ValueError(unknown) from error
        if not found.state:  # it is forgotten, and its incidents are not
            raise ValueError(unknown)
        with self._broker.client() as client:
            init_producer_id(client, transactional_id, transaction_timeout_ms=_FENCING_TIMEOUT_MS)

    def expire_transaction(self, transactional_id: str) -> None:
        """Let the time of an open transaction be up: it is aborted, and its producer is fenced.

        Raises ValueError if the transactional id has none open, or one that no time ends (KIP-939).
        """

        def expire(engine: Log) -> bool:
            found = engine.advice.look(partial(ended_by_time, transactional_id=transactional_id))
            if found is not None:
                engine.submit([ExpireTransaction(transaction_id=found, early=True)], lambda answers: None)
            return found is not None

        if not self._broker.in_engine(expire):
            raise ValueError(f"expire_transaction({transactional_id!r}): it has no transaction open that time ends")

    def rebalance(self, group: str) -> None:
        """Let a group rebalance; its members learn of it by their next heartbeats.

        In a group of the classic protocol a member joins and leaves again. In one of the consumer protocol (KIP-848)
        the members are removed, and join again. Raises ValueError if the group has no members.
        """
        with self._broker.client() as client:
            rebalance(client, group)

    def revoke(self, principal: str, *rules: str) -> None:
        """Remove a user, with all access rules for it, or only the rules that are named.

        A rule is written as in `acls`, without the principal: `revoke("User:alice", "Read --topic orders")`. Within a
        second the connections of a removed user are closed, and what rests on a rule that is gone ends. After the test,
        `exacta_broker` has users and rules again. Raises ValueError where there is no such user, and no such rule.
        """
        wanted = [acl for each in rules for acl in acls_of(f"{shlex.quote(principal)} {each}")]
        kind, _, user = principal.partition(":")

        def take(engine: Log) -> list[Command]:
            rules_now, keys_now = engine.advice.look(lambda state: (tuple(state.acls), state.scram_keys.get(user, ())))
            acls = tuple(each for each in rules_now if (each in wanted if rules else each.principal == principal))
            keys = () if rules or kind != "User" else keys_now
            taken: list[Command] = [_altered(ScramAlteration(user, each.mechanism)) for each in keys]
            given: list[Command] = [_altered(ScramAlteration(user, each.mechanism, each)) for each in keys]
            if acls:
                taken.append(DeleteAcls(filters=tuple(map(_filter, acls))))
                given.append(CreateAcls(acls=acls))
            engine.submit(taken, lambda answers: None)
            return given

        given = self._broker.in_engine(take)
        if not given or len(wanted) > sum(len(each.acls) for each in given if isinstance(each, CreateAcls)):
            self._revoked += given
            raise ValueError(f"revoke({', '.join(map(repr, (principal, *rules)))}): there is no such user or rule")
        self._revoked += given


def _altered(alteration: ScramAlteration) -> Command:
    return AlterScramKeys(alterations=(alteration,))


def _filter(acl: Acl) -> AclFilter:
    pattern = PatternFilter[acl.pattern.name]
    return AclFilter(acl.kind, acl.name, pattern, acl.principal, acl.host, acl.operation, acl.allows)


_FENCING_TIMEOUT_MS = 60_000
"""The transaction time-out of the producer that fences: librdkafka's and Java's own. It never begins a transaction."""


def _times(times: int) -> str:
    return "" if times == 1 else f", times={times}"
