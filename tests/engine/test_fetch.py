"""Fetches: what they wait for, how much they get, and when they are refused."""

from exacta.core.commands import DeleteTopic
from exacta.core.ids import Body
from exacta.core.rejections import Rejection
from exacta.core.replies import TopicDeletedReply, TransactionEndedReply
from tests.engine.producer import Producer
from tests.engine.rig import Rig


def test_a_fetch_waits_for_records_or_its_time(rig: Rig) -> None:
    waiting, impatient = rig.fetch(max_wait_ms=500), rig.fetch(max_wait_ms=100)
    rig.loop.pass_time(100)
    assert (len(waiting), len(impatient)) == (0, 1)
    assert impatient[0].records == []
    rig.append(b"one")
    rig.loop.settle()
    assert [bytes(buffer) for buffer in waiting[0].records] == [b"one"]
    rig.loop.pass_time(500)
    assert len(waiting) == 1, "answered once"


def test_min_and_max_bytes(rig: Rig) -> None:
    waiting = rig.fetch(max_wait_ms=1000, min_bytes=6)
    for payload in (b"aaa", b"bbb", b"ccc"):
        rig.append(payload)
        rig.loop.settle()
    assert b"".join(map(bytes, waiting[0].records)) == b"aaabbb"
    assert rig.records(max_bytes=7) == b"aaabbb"
    assert rig.records(max_bytes=1) == b"aaa", "one batch at least (KIP-74)"
    assert rig.records(2) == b"ccc"


def test_a_fetch_beyond_the_end_or_of_nothing_is_refused(rig: Rig) -> None:
    answers = [rig.fetch(5), rig.fetch(-1), rig.fetch(partition=9)]
    rig.settle()
    out_of_range = Rejection.OFFSET_OUT_OF_RANGE
    assert [answer[0].rejection for answer in answers] == [
        out_of_range,
        out_of_range,
        Rejection.UNKNOWN_TOPIC_OR_PARTITION,
    ]


def test_a_partition_with_a_body_that_its_reader_does_not_understand_is_refused(rig: Rig) -> None:
    kafka_only = frozenset({Body.KAFKA})
    rig.append(b"one")
    rig.loop.settle()
    assert rig.fetch(bodies=kafka_only)[0].rejection is None
    waiting = rig.fetch(1, bodies=kafka_only, max_wait_ms=10_000)
    rig.append(b"two", body=Body.PULSAR)
    rig.loop.settle()
    for found in (waiting, rig.fetch(bodies=kafka_only), rig.fetch(2, bodies=kafka_only)):
        rig.loop.settle()
        assert (found[0].rejection, found[0].records) == (Rejection.UNREADABLE_BODY, [])
    assert rig.records() == b"onetwo"


def test_a_deleted_topic_answers_who_waits_for_it(rig: Rig) -> None:
    waiting = rig.fetch(max_wait_ms=10_000)
    assert isinstance(rig.ask(DeleteTopic(topic="t")), TopicDeletedReply)
    rig.loop.settle()
    assert waiting[0].rejection is Rejection.UNKNOWN_TOPIC_OR_PARTITION
    assert rig.engine.visible("t", 0) is None


def test_a_failing_read_is_an_answer(rig: Rig) -> None:
    rig.append(b"one")
    rig.loop.settle()
    rig.storage.read_fault = "EIO"
    results = rig.fetch()
    rig.loop.settle()
    assert results[0].rejection is Rejection.STORAGE_ERROR
    assert results[0].records == []


# --- time -------------------------------------------------------------------------------------------------------------


def test_an_answered_fetch_is_not_kept_alive_by_its_deadline(rig: Rig) -> None:
    rig.fetch(max_wait_ms=60_000)
    rig.append(b"one")
    rig.loop.settle()
    assert rig.engine._fetcher._by_key == {}
    assert rig.engine._fetcher._waiting == {}


def test_an_answer_that_ends_with_the_first_record_of_an_aborted_transaction_names_it(rig: Rig) -> None:
    producer = Producer(rig)
    producer.begin(b"aborted")
    assert isinstance(producer.end(commit=False), TransactionEndedReply)
    rig.loop.settle()
    [result] = rig.fetch(read_committed=True, max_bytes=1)
    assert [bytes(buffer) for buffer in result.records] == [b"aborted"]
    assert [(each.producer_id, each.first_offset) for each in result.aborted] == [(producer.pair[0], 0)]
