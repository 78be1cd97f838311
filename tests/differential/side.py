"""One broker as a sequence meets it: sends the steps' frames, and tells what came of them in words that both share.

Producer ids, epochs, offsets and member ids are each broker's own: pairs are told by who was given them and as which,
offsets by how many records lie before them (a marker takes an offset too, and Kafka also writes markers of nothing),
members by their client and by which of its ids it is.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages import (
    k01_fetch,
    k02_list_offsets,
    k03_metadata,
    k10_find_coordinator,
    k15_describe_groups,
    k65_describe_transactions,
)
from exacta.protocol.kafka.records import HEADER_SIZE, iter_batches
from tests.differential.calls import HANGS_UP, HOW, SILENT, WAITS, Answer, Call, Place
from tests.differential.parking import Parking
from tests.differential.steps import CLIENTS, GROUPS, PARTITIONS, Init, Step
from tests.kafka.wire import Wire

Pair = tuple[int, int]
NOBODY = "nobody"
NOBODYS = 2**40
"""From here on there are producer ids that no broker has given to anybody: one for each sequence."""

NOT_YET = {
    ErrorCode.NOT_ENOUGH_REPLICAS,  # so CONCURRENT_TRANSACTIONS is put to older clients, by Produce
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}
"""What a client asks again after; Exacta says none of it."""
PATIENCE_S = 60.0
_ENDING = ("PrepareCommit", "PrepareAbort", "PrepareEpochFence")
_READ_COMMITTED = 1
_AHEAD_MS = 20 * 60 * 1000
"""Records are dated this far ahead of the markers, which have the broker's time: later than all that is there."""


def prepared_name(number: int) -> str:
    """Return what a sequence is called for which the ids have been prepared (`exhaustion.py`)."""
    return f"e{number}"


class Side:
    """A broker, and what its clients have been told by it in the present sequence."""

    def __init__(self, address: tuple[str, int]) -> None:
        """Connect, and wait until both coordinators answer."""
        self.address = address
        self.wire = Wire(address)
        self._numbers = itertools.count()
        self._topics = itertools.count()
        self._prepared = itertools.count()
        self._timestamps_ms = itertools.count(time.time_ns() // 1_000_000 + _AHEAD_MS)
        self._new_topic()
        for kind in (0, 1):
            ask = k10_find_coordinator.FindCoordinatorRequest(key="x", key_type=kind)
            self._until_known(partial(self._error_code, ask))
        some = k15_describe_groups.DescribeGroupsRequest(groups=[f"g{number}" for number in range(500)])
        self._until_known(lambda: max(group.error_code for group in self.wire.ask(some, 5).groups))
        self.parking = Parking(address)

    def close(self) -> None:
        """Hang up."""
        self.wire.socket.close()
        self.parking.close()

    def begin(self, *, near_the_last_epoch: bool = False) -> None:
        """Begin a sequence: new names (of ids whose epochs are nearly used up), and every client takes its id over."""
        number = next(self._numbers)
        self.name = f"n{number}"
        if near_the_last_epoch:
            self.name = prepared_name(next(self._prepared))
        self._nobodys: Pair = (NOBODYS + number, 0)
        self.pairs: dict[str, list[Pair]] = {client: [] for client in CLIENTS}
        self.next_sequence: dict[tuple[str, Pair, int], int] = {}
        self.last_batch: dict[tuple[str, Pair, int, bool], bytes] = {}
        self.sent: dict[str, list[tuple[Step, Pair, Call]]] = {client: [] for client in CLIENTS}
        self.places: list[Place] = []
        self.next_timestamp_ms()  # nobody's: what asks for just before the sequence must not find the one before it
        self.first_timestamp_ms = self.next_timestamp_ms()
        self.parking.begin([self.group(group) for group in GROUPS])
        self.settle()
        if self._held_back():
            self._new_topic()  # of a sequence that failed
        self._starts = {partition: self.end_offset(partition, committed=False) for partition in PARTITIONS}
        for client in CLIENTS:
            assert self.run(Init(client=client, version=4))[0] == "NONE"

    def finish(self) -> None:
        """End a sequence: leave nothing open."""
        self.parking.finish(self.wire)
        for client in CLIENTS:
            self.run(Init(client=client, version=4))
        self.settle()
        assert not self._held_back(), f"partitions {self._held_back()} hold readers back for ever"

    def _held_back(self) -> list[int]:
        return [
            partition
            for partition in PARTITIONS
            if self.end_offset(partition, committed=True) != self.end_offset(partition, committed=False)
        ]

    def _error_code(self, ask: k10_find_coordinator.FindCoordinatorRequest) -> int:
        code: int = self.wire.ask(ask, 3).error_code
        return code

    def _end_code(self, partition: int) -> int:
        code: int = self._end(partition, committed=False).error_code
        return code

    def _new_topic(self) -> None:
        self.topic = f"t{next(self._topics)}"
        topics = [k03_metadata.MetadataRequestTopic(name=self.topic)]
        self._until_known(lambda: self.wire.ask(k03_metadata.MetadataRequest(topics=topics), 9).topics[0].error_code)
        for partition in PARTITIONS:
            self._until_known(partial(self._end_code, partition))

    def run(self, step: Step, like: Side | None = None) -> Answer:
        """Send the step's request; return its error code's name, and what else its answer says.

        A step of several requests leaves in `parts` which steps those are, and their answers.

        Where requests wait, `like` is the side that has taken this step before: what it has answered, must come here.
        """
        self.parts: list[tuple[Step, Answer]] = []
        self.may_wait = like is None or like.parts[0][1] == (WAITS,)
        try:
            made = HOW[type(step)](self, step)
            answer = made if isinstance(made, tuple) else self.send(self.note(step, made), step.client, like)
        except ConnectionError:
            self.reconnect()
            answer = (HANGS_UP,)
        except TimeoutError:
            self.reconnect()
            answer = (SILENT,)
        self.parts = self.parts or [(step, answer)]
        return answer

    def note(self, step: Step, call: Call) -> Call:
        """Note what a transactional client sends, for it may come once more."""
        if step.client in self.sent:
            self.sent[step.client].append((step, self.pair(step.client, step.age), call))
        return call

    def reconnect(self) -> None:
        """Connect anew, after the broker has hung up."""
        self.wire.socket.close()
        self.wire = Wire(self.address)

    def send(self, call: Call, client: str, like: Side | None = None) -> Answer:
        """Send a request; return what its answer says, and what others waited for that is answered now."""
        if call.parks:
            self.parking.park(client, call)
            answer: Answer = (WAITS,)
        else:
            reply = self.ask(call.request, call.version, call.code)
            call.learn(reply)
            answer = call.describe(reply)
        if call.ends:
            # Kafka answers before the markers are written. What comes in between may still join the transaction that
            # has ended (version 1), by chance; there is nothing to compare.
            self.settle()
        if not self.parking.waiting:
            self.parking.answered = set()
            return answer
        return self.parking.gather(self.wire, answer, None if like is None else like.parking)

    # --- what is there afterwards -------------------------------------------------------------------------------------

    def read(self) -> None:
        """Read what this sequence has put into the partitions, for what follows."""
        self._aborted: dict[int, set[tuple[int, int]]] = {partition: set() for partition in PARTITIONS}
        self._log = {partition: list(self._batches(partition)) for partition in PARTITIONS}

    def records(self, partition: int) -> list[Answer]:
        """Return the batches, in order."""
        return [self.described(header) for header, _ in self._log[partition] if not header.control]

    def described(self, header: Any) -> Answer:
        """Return what is compared of a batch."""
        who, count = self.who(header.producer_id), header.record_count
        return (who, count, header.base_sequence, header.transactional)

    def ends(self, partition: int, client: str) -> list[str]:
        """Return, in order, what a client wrote and how it ended; markers of nothing are left out."""
        found: list[str] = []
        for header, view in self._log[partition]:
            if self.who(header.producer_id) != client:
                continue
            if not header.control:
                found.append("write" if header.transactional else "plain write")
            elif found and found[-1] == "write":
                found.append("commit" if _commits(view) else "abort")
        return found

    def aborted(self, partition: int) -> list[Answer]:
        """Return the aborted transactions of this sequence that a reader was told of (it may be told of others)."""
        return sorted(
            (who, self.records_before(Place(partition, first_offset)))
            for producer_id, first_offset in self._aborted[partition]
            if (who := self.who(producer_id)) != NOBODY
        )

    def records_before(self, place: Place) -> int:
        """Return how many records of this sequence lie before an offset."""
        return sum(
            header.record_count
            for header, _ in self._log.get(place.partition, ())
            if not header.control and header.base_offset < place.offset
        )

    def _batches(self, partition: int) -> Iterator[tuple[Any, memoryview]]:
        """Read as a read_committed reader does, who sees everything here, since nothing is open."""
        offset, end = self._starts[partition], self.end_offset(partition, committed=False)
        deadline = time.monotonic() + PATIENCE_S
        while offset < end:
            answer = self._fetch(partition, offset)
            for entry in answer.aborted_transactions or []:
                self._aborted[partition].add((entry.producer_id, entry.first_offset))
            for header, view in iter_batches(bytes(answer.records or b"")):
                yield header, view
                offset = header.last_offset + 1
            assert time.monotonic() < deadline, f"a reader of partition {partition} does not get beyond {offset}"

    def _fetch(self, partition: int, offset: int) -> Any:
        wanted = k01_fetch.FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
        topics = [k01_fetch.FetchTopic(topic=self.topic, partitions=[wanted])]
        request = k01_fetch.FetchRequest(topics=topics, isolation_level=_READ_COMMITTED, max_bytes=1 << 20)
        return self.wire.ask(request, 11).responses[0].partitions[0]

    def end_offset(self, partition: int, *, committed: bool) -> int:
        """Return where a partition ends for a reader of committed or of all records; -1: there is none."""
        return int(self._end(partition, committed=committed).offset)

    def _end(self, partition: int, *, committed: bool) -> Any:
        wanted = k02_list_offsets.ListOffsetsPartition(partition_index=partition, timestamp=-1)
        topics = [k02_list_offsets.ListOffsetsTopic(name=self.topic, partitions=[wanted])]
        request = k02_list_offsets.ListOffsetsRequest(replica_id=-1, isolation_level=int(committed), topics=topics)
        return self.wire.ask(request, 6).topics[0].partitions[0]

    # --- names and numbers --------------------------------------------------------------------------------------------

    def transactional_id(self, client: str) -> str:
        """Return the client's transactional id in this sequence."""
        return f"{self.name}-{client}"

    def group(self, group: str) -> str:
        """Return the group's name in this sequence."""
        return f"{self.name}-{group}"

    def next_timestamp_ms(self) -> int:
        """Return a time later than all before."""
        return next(self._timestamps_ms)

    def pair(self, client: str, age: int) -> Pair:
        """Return the pair that a client was given so long ago, or one that it was not."""
        pairs = self.pairs[client]
        if age >= len(pairs):
            return self._nobodys
        producer_id, epoch = pairs[-1 - max(0, age)]
        return (producer_id, epoch + 1) if age < 0 else (producer_id, epoch)

    def which(self, client: str, pair: Pair) -> int:
        """Return how old a pair is to its client: 0 is the one given last, -1 one that was not given."""
        pairs = self.pairs.get(client, [])
        return len(pairs) - 1 - pairs.index(pair) if pair in pairs else -1

    def offset(self, partition: int, of: int | str) -> int:
        """Return the offset of a batch of this sequence, the last one being 0, or of an end, if there is none too."""
        there = [place.offset for place in self.places if place.partition == partition]
        if isinstance(of, int) and of < len(there):
            return there[-1 - of]
        return 0 if of == "start" else max(0, self.end_offset(partition, committed=False))

    def given(self, client: str, pair: Pair) -> str:
        """Note that a client was given a pair; return which one it is to the client."""
        pairs = self.pairs[client]
        known = pair in pairs
        rotated = bool(pairs) and pairs[-1][0] != pair[0]
        if known:
            pairs.remove(pair)
        pairs.append(pair)
        return "known" if known else "of a new id" if rotated else "new"

    def who(self, producer_id: int) -> str:
        """Return which client of this sequence was given a producer id."""
        for client, pairs in self.pairs.items():
            if any(producer_id == known for known, _ in pairs):
                return client
        return NOBODY

    # --- asking -------------------------------------------------------------------------------------------------------

    def ask(self, request: Any, version: int, code: Callable[[Any], int]) -> Any:
        """Ask, and ask again while the broker says that it is not ready."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            answer = self.wire.ask(request, version)
            if code(answer) not in NOT_YET or time.monotonic() > deadline:
                return answer

    def settle(self) -> None:
        """Wait until every transaction that was ended has ended everywhere (Kafka's answer comes before)."""
        ids = [self.transactional_id(client) for client in CLIENTS]
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            request = k65_describe_transactions.DescribeTransactionsRequest(transactional_ids=ids)
            states = self.wire.ask(request, 0).transaction_states
            if not any(state.transaction_state in _ENDING for state in states):
                return
        raise AssertionError(f"transactions are still ending after {PATIENCE_S:.0f} s")

    def _until_known(self, code: Callable[[], int]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while code() != ErrorCode.NONE:
            assert time.monotonic() < deadline, "the broker does not get ready"


def _commits(view: memoryview) -> bool:
    """Return what a control batch of one record says: its key is version and type, behind five bytes of the record."""
    # length, attributes, timestamp delta, offset delta, key length: one byte each in a marker
    return view[HEADER_SIZE + 8] == 1
