"""Fetch sessions (KIP-227): the table of `fetch_sessions.py` state by state, room, and what a reader must be told."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exacta.kafka.fetch_sessions import EVICTION_MS, NO_SESSION, Asked, FetchSession, FetchSessions
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from exacta.protocol.kafka.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from exacta.protocol.kafka.schema import NO_UUID
from tests.docstring_tables import docstring_table
from tests.kafka.test_topic_ids import create, delete
from tests.kafka.test_transactions_and_groups import Producer
from tests.kafka.wire import Front, Wire, batch, front, values_in
from tests.shares import examples

BY_ID, BY_NAME = 17, 12
NONE, NOT_FOUND = ErrorCode.NONE, ErrorCode.FETCH_SESSION_ID_NOT_FOUND
WRONG_EPOCH, OTHER_NAMES = ErrorCode.INVALID_FETCH_SESSION_EPOCH, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


class Reader:
    """One reader of the partitions of topic t, which has the id `topic_id`."""

    def __init__(self, wire: Wire, topic_id: bytes, version: int = BY_ID) -> None:
        self.wire, self.topic_id, self.version = wire, topic_id, version
        self.session_id, self.epoch = NO_SESSION, 0

    def ask(
        self,
        offsets: dict[int, int] | None = None,
        *,
        forget: Sequence[int] = (),
        epoch: int | None = None,
        committed: bool = False,
        max_wait_ms: int = 0,
    ) -> Any:
        """Send the next request of the session; an answer without an error makes it go on."""
        request = self.request(offsets or {}, forget, self.epoch if epoch is None else epoch, committed, max_wait_ms)
        response = self.wire.ask(request, self.version)
        if not response.error_code:
            self.session_id = response.session_id
            self.epoch = self.epoch + 1 if response.session_id else 0
        return response

    def request(
        self, offsets: dict[int, int], forget: Sequence[int], epoch: int, committed: bool, max_wait_ms: int
    ) -> FetchRequest:
        name: dict[str, Any] = {"topic_id": self.topic_id} if self.version == BY_ID else {"topic": "t"}
        partitions = [
            FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
            for index, offset in offsets.items()
        ]
        return FetchRequest(
            session_id=self.session_id,
            session_epoch=epoch,
            min_bytes=1,
            max_wait_ms=max_wait_ms,
            isolation_level=int(committed),
            topics=[FetchTopic(partitions=partitions, **name)] if partitions else [],
            forgotten_topics_data=[ForgottenTopic(partitions=list(forget), **name)] if forget else [],
        )


def told(response: Any) -> dict[int, Any]:
    """Return what is said of each partition; none is spoken of twice."""
    found = [data for topic in response.responses for data in topic.partitions]
    by_index = {data.partition_index: data for data in found}
    assert len(found) == len(by_index)
    return by_index


def write(wire: Wire, value: bytes = b"v", partition: int = 0) -> None:
    _produce(wire, partition, batch(value))


def _produce(wire: Wire, partition: int, records: bytes, transactional_id: str | None = None) -> None:
    data = PartitionProduceData(index=partition, records=records)
    topic = TopicProduceData(name="t", partition_data=[data])
    request = ProduceRequest(acks=-1, transactional_id=transactional_id, topic_data=[topic])
    assert wire.ask(request, 11).responses[0].partition_responses[0].error_code == NONE


class Writer(Producer):
    """A transactional producer that writes."""

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire)
        self.sequences = [0, 0, 0]

    def write(self, partition: int) -> None:
        assert self.add_partitions(t=[partition]) == {("t", partition): NONE}
        pair = {"producer_id": self.producer_id, "producer_epoch": self.epoch}
        records = batch(b"of x", base_sequence=self.sequences[partition], transactional=True, **pair)
        _produce(self.wire, partition, records, "x")
        self.sequences[partition] += 1


@pytest.fixture
def topic_id(wire: Wire) -> bytes:
    return create(wire, partitions=3)


@pytest.fixture
def reader(wire: Wire, topic_id: bytes) -> Reader:
    """A reader with a session of partitions 0 and 1, both at their end."""
    reader = Reader(wire, topic_id)
    assert told(reader.ask({0: 0, 1: 0})).keys() == {0, 1}
    assert reader.session_id != NO_SESSION
    return reader


SESSIONS = ("none", "by id", "by name")
EPOCHS = (-1, 0, 1, 2, -7)  # 1 is expected


TABLE = docstring_table("exacta.kafka.fetch_sessions", "a request with")
ANSWERED, BECOMES = TABLE.columns
FORGETS_ALL = "the expected epoch, which forgets all partitions"


def row_of(session: str, epoch: int, version: int) -> str:
    if epoch in (-1, 0):
        return f"epoch {epoch}"
    if session == "none" or epoch != 1:
        return f"another epoch{', of no session' if session == 'none' else ' than its session expects'}"
    return f"the expected epoch{', but topics the other way' if (session == 'by id') != (version == BY_ID) else ''}"


REQUESTS = list(itertools.product(SESSIONS, EPOCHS, (BY_ID, BY_NAME)))
assert TABLE.rows.keys() == {FORGETS_ALL, *(row_of(*each) for each in REQUESTS)}


@pytest.mark.parametrize(("session", "epoch", "version"), REQUESTS)
def test_every_request_in_every_state(wire: Wire, topic_id: bytes, session: str, epoch: int, version: int) -> None:
    reader = Reader(wire, topic_id, BY_NAME if session == "by name" else BY_ID)
    if session == "none":
        reader.session_id = 77
    else:
        reader.ask({0: 0})
    named = reader.session_id
    asker = Reader(wire, topic_id, version)
    asker.session_id = named
    response = asker.ask({1: 0}, epoch=epoch)
    answered, becomes = TABLE.rows[row_of(session, epoch, version)]
    code = NONE if answered in ("in full", "incrementally") else ErrorCode[answered]
    goes_on, ended = becomes in ("goes on", "ended, and a new one begun"), becomes.startswith(("ended", "-"))
    assert (response.error_code, response.session_id != NO_SESSION) == (code, goes_on)
    assert (response.session_id == named) == (goes_on and not ended)
    assert told(response).keys() == ({1} if code == NONE else set())
    reader.session_id, reader.epoch = named, 2 if code == NONE and not ended else 1
    assert (reader.ask().error_code == NOT_FOUND) == ended, "a refused request has changed nothing"


class TestWhatIsTold:
    def test_nothing_where_nothing_has_changed(self, reader: Reader) -> None:
        assert told(reader.ask()) == {}

    def test_only_what_has_changed_again_until_the_reader_moves_on(self, wire: Wire, reader: Reader) -> None:
        write(wire, b"new", 1)
        for _ in range(2):
            assert [(index, values_in(data.records)) for index, data in told(reader.ask()).items()] == [(1, [b"new"])]
        assert told(reader.ask({1: 1})) == {}

    def test_a_partition_that_is_added_and_one_that_is_forgotten(self, wire: Wire, reader: Reader) -> None:
        assert told(reader.ask({2: 0}, forget=[0])).keys() == {2}
        for partition in range(3):
            write(wire, partition=partition)
        assert told(reader.ask()).keys() == {1, 2}

    def test_an_error_every_time_and_what_follows_it(self, wire: Wire, reader: Reader) -> None:
        for offsets in ({0: 9}, {}):
            assert told(reader.ask(offsets))[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert told(reader.ask({0: 0}))[0].error_code == NONE
        assert told(reader.ask()) == {}

    def test_an_end_of_a_transaction_that_moves_the_last_stable_offset(self, wire: Wire, reader: Reader) -> None:
        producer = Writer(wire)
        producer.write(0)
        first = told(reader.ask(committed=False))[0]  # which waits until what is acknowledged is shown
        assert (first.high_watermark, first.last_stable_offset) == (1, 0)
        assert told(reader.ask(committed=True)) == {}
        producer.end(commit=False)
        ended = told(reader.ask(committed=True))[0]
        assert (ended.high_watermark, ended.last_stable_offset) == (2, 2)
        assert [(each.producer_id, each.first_offset) for each in ended.aborted_transactions] == [
            (producer.producer_id, 0)
        ]

    def test_the_topic_is_deleted_and_made_anew(self, wire: Wire, reader: Reader, topic_id: bytes) -> None:
        delete(wire)
        gone = told(reader.ask())
        assert {data.error_code for data in gone.values()} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        create(wire)
        write(wire, b"of another topic")
        anew = told(reader.ask())
        assert anew.keys() == {0, 1}
        assert anew[0].error_code == ErrorCode.INCONSISTENT_TOPIC_ID
        assert bytes(anew[0].records) == b""
        assert told(reader.ask({0: 1}))[0].error_code == ErrorCode.INCONSISTENT_TOPIC_ID, "named once more"

    def test_an_id_that_nobody_has_is_told_every_time(self, wire: Wire, reader: Reader, topic_id: bytes) -> None:
        reader.topic_id = b"\2" * 16
        for offsets in ({0: 0}, {}):
            assert told(reader.ask(offsets))[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID

    def test_who_forgets_everything_has_no_session_any_more(self, reader: Reader) -> None:
        response = reader.ask(forget=[0, 1])
        assert (response.error_code, response.session_id, response.responses) == (NONE, NO_SESSION, [])
        assert TABLE[FORGETS_ALL, BECOMES] == "ended"

    def test_partitions_take_turns(self, wire: Wire, reader: Reader) -> None:
        """Where one answer has room for one batch, no partition starves the other."""
        for _ in range(2):
            write(wire, b"x" * 100, 0)
            write(wire, b"x" * 100, 1)
        seen = []
        for _ in range(4):
            request = reader.request({}, (), reader.epoch, False, 0)
            request.max_bytes = 1
            found = told(wire.ask(request, BY_ID))
            reader.epoch += 1
            seen += [index for index, data in found.items() if data.records]
        assert seen == [0, 1, 0, 1]

    def test_a_request_that_waited_while_another_took_the_next_epoch(
        self, broker: Front, wire: Wire, reader: Reader
    ) -> None:
        waiting = reader.request({}, (), reader.epoch, False, 60_000)
        wire.send(waiting, BY_ID)
        other = broker.connect()
        while next(iter(broker.on_loop(lambda: list(broker.kafka.fetch_sessions)))).epoch == reader.epoch:
            pass  # the first request has not been read yet
        assert other.ask(reader.request({}, (), reader.epoch + 1, False, 0), BY_ID).error_code == NONE
        write(other)
        _, response = wire.receive(waiting, BY_ID)
        assert (response.error_code, response.session_id) == (WRONG_EPOCH, reader.session_id)


STEPS = st.one_of(
    st.tuples(st.just("write"), st.integers(0, 2)),
    st.tuples(st.just("begin"), st.integers(0, 2)),
    st.tuples(st.just("end"), st.booleans()),
    st.tuples(st.just("move"), st.integers(0, 2), st.integers(0, 4)),
    st.tuples(st.just("forget"), st.integers(0, 2)),
    st.tuples(st.just("ask")),
)


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEPS, max_size=25))
def test_what_a_session_tells_adds_up_to_what_a_full_fetch_says(steps: list[tuple[Any, ...]]) -> None:
    with front() as broker:
        wire = broker.connect()
        reader = Reader(wire, create(wire, partitions=3))
        producer = Writer(wire)
        offsets: dict[int, int] = {}
        changed: dict[int, int] = {}
        forgotten: set[int] = set()
        known: dict[int, tuple[Any, ...]] = {}
        is_open = False
        for step in [*steps, ("move", 0, 0), ("ask",)]:
            match step:
                case ("write", partition):
                    write(wire, partition=partition)
                case ("begin", partition):
                    producer.write(partition)
                    is_open = True
                case ("end", commit):
                    if is_open:
                        producer.end(commit=commit)
                    is_open = False
                case ("move", partition, offset):
                    offsets[partition] = changed[partition] = offset
                    forgotten.discard(partition)
                case ("forget", partition):
                    if offsets.pop(partition, None) is not None:
                        changed.pop(partition, None)
                        forgotten.add(partition)
                case _ if offsets or reader.session_id:
                    response = reader.ask(changed, forget=sorted(forgotten), committed=True)
                    assert response.error_code == NONE
                    for partition in forgotten:  # one that came back before the session heard of it is still known
                        known.pop(partition, None)
                    silent = offsets.keys() - told(response).keys()
                    known.update({index: facts(data) for index, data in told(response).items()})
                    known.update({index: (*known[index][:4], [], []) for index in silent})
                    changed, forgotten = {}, set()
                    full = Reader(wire, reader.topic_id).ask(offsets, epoch=-1, committed=True)
                    assert known == {index: facts(data) for index, data in told(full).items()}


def facts(data: Any) -> tuple[Any, ...]:
    aborted = [(each.producer_id, each.first_offset) for each in data.aborted_transactions or ()]
    offsets = (data.error_code, data.high_watermark, data.last_stable_offset, data.log_start_offset)
    return (*offsets, values_in(data.records), aborted)


class TestRoom:
    @pytest.fixture
    def ids(self) -> Iterator[int]:
        return iter(range(1, 100))

    def sessions(self, ids: Iterator[int], slots: int = 2, max_partitions: int = 100) -> FetchSessions:
        return FetchSessions(slots, lambda: next(ids), max_partitions=max_partitions)

    def begin(self, sessions: FetchSessions, size: int, now_ms: int = 0) -> int:
        return sessions.begin(asked(range(size)), now_ms, by_topic_id=False)

    def test_nobody_gives_way_to_a_newcomer_while_all_are_young(self, ids: Iterator[int]) -> None:
        sessions = self.sessions(ids)
        assert [self.begin(sessions, size) for size in (1, 1, 9)] == [1, 2, NO_SESSION]
        assert self.begin(sessions, 9, EVICTION_MS) == NO_SESSION

    def test_the_one_used_longest_ago_ends_first(self, ids: Iterator[int]) -> None:
        sessions = self.sessions(ids)
        self.begin(sessions, 9)
        self.begin(sessions, 1)
        self.go_on(sessions, 1, EVICTION_MS)
        assert self.begin(sessions, 1, EVICTION_MS + 1) == 3
        assert [session.session_id for session in sessions] == [1, 3]

    @pytest.mark.parametrize(("size", "found"), [(2, NO_SESSION), (3, 3)])
    def test_an_old_one_gives_way_to_a_larger_one(self, ids: Iterator[int], size: int, found: int) -> None:
        sessions = self.sessions(ids)
        self.begin(sessions, 5)
        self.begin(sessions, 2)
        for session_id in (1, 2):
            self.go_on(sessions, session_id, EVICTION_MS)
        assert self.begin(sessions, size, EVICTION_MS + 1) == found
        assert [session.session_id for session in sessions] == ([1, 2] if not found else [1, 3])

    def test_nobody_is_given_up_for_one_that_does_not_fit(self, ids: Iterator[int]) -> None:
        sessions = self.sessions(ids, slots=2, max_partitions=10)
        first, second = self.begin(sessions, 5), self.begin(sessions, 5)
        assert self.begin(sessions, 9, now_ms=300_000) == NO_SESSION
        for session_id in (first, second):
            assert isinstance(sessions.find(session_id, 1, by_topic_id=False), FetchSession)

    def test_no_slots_no_sessions(self, ids: Iterator[int]) -> None:
        assert self.begin(self.sessions(ids, slots=0), 1) == NO_SESSION

    def test_partitions_of_all_sessions_are_bounded(self, ids: Iterator[int]) -> None:
        sessions = self.sessions(ids, slots=9, max_partitions=10)
        assert [self.begin(sessions, size) for size in (5, 6, 5)] == [1, NO_SESSION, 2]
        grown = sessions.find(1, 1, by_topic_id=False)
        assert isinstance(grown, FetchSession)
        assert sessions.go_on(grown, asked([5]), [], 0) == NOT_FOUND
        assert self.begin(sessions, 5) == 3, "its room is free again"

    def test_what_no_topic_can_be_called_is_not_kept(self, ids: Iterator[int]) -> None:
        sessions = self.sessions(ids)
        longest, longer = ([Asked("n" * size, b"", 0)] for size in (249, 250))
        assert sessions.begin(longer, 0, by_topic_id=False) == NO_SESSION
        assert sessions.begin(longest, 0, by_topic_id=False) == 1
        going_on = sessions.find(1, 1, by_topic_id=False)
        assert isinstance(going_on, FetchSession)
        assert sessions.go_on(going_on, longer, [], 0) == NOT_FOUND
        assert list(sessions) == []

    def test_what_no_topic_can_be_called_is_refused_every_time(self, wire: Wire) -> None:
        topics = [FetchTopic(topic="n" * 30_000, partitions=[FetchPartition(partition=0, fetch_offset=0)])]
        for _ in range(2):
            answer = wire.ask(FetchRequest(session_epoch=0, topics=topics), BY_NAME)
            assert (answer.error_code, answer.session_id) == (NONE, NO_SESSION)
            [partition] = answer.responses[0].partitions
            assert partition.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def test_an_id_in_use_is_not_given_out_again(self) -> None:
        ids = iter([7, 7, 8])
        sessions = self.sessions(ids)
        assert [self.begin(sessions, 1), self.begin(sessions, 1)] == [7, 8]

    def test_epochs_begin_again_at_1(self, ids: Iterator[int]) -> None:
        sessions = self.sessions(ids)
        self.begin(sessions, 1)
        [session] = sessions
        session.epoch = 2**31 - 1
        self.go_on(sessions, 1, 0)
        assert session.epoch == 1

    def go_on(self, sessions: FetchSessions, session_id: int, now_ms: int) -> None:
        [session] = [each for each in sessions if each.session_id == session_id]
        assert sessions.go_on(session, [], [], now_ms) is session

    def test_the_option(self) -> None:
        with front(max_incremental_fetch_session_cache_slots=1) as broker:
            wire = broker.connect()
            readers = [Reader(wire, create(wire)) for _ in range(2)]
            assert [reader.ask({0: 0}).session_id != NO_SESSION for reader in readers] == [True, False]


def asked(indexes: Sequence[int]) -> list[Asked]:
    return [Asked("t", NO_UUID[:0], index) for index in indexes]
