"""The table of what may be removed from a log (`core/log/keeping.py`) is swept; quotas and expiry."""

import logging
from typing import Any

import pytest

from exacta.config.options import configure
from exacta.config.retention import retention_rules
from exacta.core.commands import (
    Acknowledge,
    BeginTransaction,
    CreateTopic,
    DeleteRecords,
    DeleteTopic,
    EndHandle,
    SetTopicConfigs,
    Skip,
    Subscribe,
    Unsubscribe,
)
from exacta.core.commands.subscriptions import EARLIEST
from exacta.core.ids import Offset, PartitionId, TransactionId
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, Appended, Subscribed, TransactionBegunReply
from exacta.core.state.subscription import Subscription
from exacta.core.values.subscriptions import SubscriptionType
from exacta.engine import backlog
from exacta.engine.upkeep import Schedule
from tests.engine.compacting import last_values
from tests.engine.rig import Rig, batch

CHECK_MS, LOOK_MS, CLEAN_MS = 10_000, 1_000, 500
CONFIGURATION = configure({})
RULES = retention_rules(lambda: CONFIGURATION)
SCHEDULE = Schedule(
    rules=RULES,
    rewriter=last_values,
    check_interval_ms=CHECK_MS,
    clean_interval_ms=CLEAN_MS,
    backlog_interval_ms=LOOK_MS,
)
NONE_KEPT = {"retention.ms": "0"}
HOLD, REFUSE, EVICT = "producer_request_hold", "producer_exception", "consumer_backlog_eviction"


class BacklogRig(Rig):
    """One topic of one partition."""

    def __init__(self, **configs: str) -> None:
        super().__init__(segment_bytes=60, schedule=SCHEDULE)
        self.configure(configs, create=True)

    def configure(self, configs: dict[str, str], *, create: bool = False) -> None:
        named = {name.replace("_", "."): value for name, value in configs.items()}
        if create:
            self.ask(CreateTopic(topic="t", topic_id=b"0" * 16, partition_count=1, configs=named))
        else:
            self.ask(SetTopicConfigs(topic="t", configs=named))

    def write(self, payload: bytes = b"x" * 10, age_ms: int = 1, transaction: TransactionId | None = None) -> object:
        producer_id = None if transaction is None else self.engine.advice.handle_producer_id(transaction)
        command = batch(
            payload,
            timestamp_ms=self.loop.now_ms - age_ms,
            transaction=transaction,
            handle_producer_id=producer_id,
        )
        return self.ask(command, payloads=[payload])

    def begin(self) -> TransactionId:
        begun = self.ask(BeginTransaction(timeout_ms=600_000))
        assert isinstance(begun, TransactionBegunReply)
        return begun.transaction_id

    def end(self, transaction: TransactionId, *, commit: bool = True) -> object:
        return self.ask(EndHandle(transaction_id=transaction, commit=commit))

    def subscribe(self, name: str = "s") -> None:
        command = Subscribe(**where(name), subscription_type=SubscriptionType.SHARED, begin=EARLIEST)
        assert isinstance(self.ask(command), Subscribed)

    def acknowledge(self, before: int, name: str = "s") -> None:
        assert self.ask(Acknowledge(**where(name), before=Offset(before))) == DONE

    def subscription(self, name: str = "s") -> Subscription | None:
        partition = self.engine._state.partitions.get(PartitionId(0))
        return None if partition is None else partition.subscriptions.get(name)

    def position(self, name: str = "s") -> int:
        found = self.subscription(name)
        assert found is not None
        return found.position

    @property
    def start_offset(self) -> int:
        seen = self.engine.visible("t", 0)
        assert seen is not None
        return seen.log_start_offset

    def reason(self) -> Rejection | None:
        return self.engine.advice.refusal(PartitionId(0))

    def is_removed(self, offset: int) -> bool:
        return self.engine.visible("t", 0) is None or not self.engine.lookups.count_unaborted(
            PartitionId(0), offset, offset + 1
        )


def where(name: str = "s") -> dict[str, Any]:
    return {"topic": "t", "partition": 0, "subscription": name}


# --- the table --------------------------------------------------------------------------------------------------------

ROWS: dict[str, dict[str, str]] = {
    "retention.ms": {"retention_ms": "0"},
    "retention.bytes": {"retention_bytes": "0"},
    "compaction": {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0"},
    "DeleteRecords": {},
    "DeleteTopic": {},
    "ttl": {"pulsar_message_ttl_ms": "1"},
    **{
        policy: {"retention_ms": "0", "pulsar_backlog_quota_bytes": "0", "pulsar_backlog_quota_policy": policy}
        for policy in (HOLD, REFUSE, EVICT)
    },
}
REMOVED, ACKNOWLEDGED, REFUSED = "removed", "acknowledged", "refused"
TABLE: dict[str, tuple[set[str], set[str]]] = {
    # row: what becomes of a message that no subscription is behind, and of one that a subscription is behind
    "retention.ms": ({REMOVED}, set()),
    "retention.bytes": ({REMOVED}, set()),
    "compaction": ({REMOVED}, {REMOVED}),
    "DeleteRecords": ({REMOVED}, {REMOVED, ACKNOWLEDGED}),
    "DeleteTopic": ({REMOVED}, {REMOVED}),
    "ttl": (set(), {ACKNOWLEDGED}),
    HOLD: ({REMOVED}, {REFUSED}),
    REFUSE: ({REMOVED}, {REFUSED}),
    EVICT: ({REMOVED}, {REMOVED, ACKNOWLEDGED}),
}


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("who", ["nobody", "all past it", "behind", "pending"])
@pytest.mark.parametrize("row", TABLE)
def test_what_may_be_removed(row: str, who: str, commit: bool) -> None:
    rig = BacklogRig(**ROWS[row])
    transaction = rig.begin()
    if who != "nobody":
        rig.subscribe()
        rig.subscribe("fast")
    for payload in (b"k=1", b"k=2", b"j=3", b"j" * 80):
        rig.write(payload)
    if who != "nobody":
        rig.acknowledge(4, "fast")
    if who == "all past it":
        rig.acknowledge(1)
    if who == "pending":
        held = Acknowledge(**where(), runs=((Offset(0), Offset(0)),), transaction=transaction)
        assert rig.ask(held) == DONE
    if row == "DeleteRecords":
        rig.ask(DeleteRecords(topic="t", partition=0, before_offset=1))
    elif row == "DeleteTopic":
        rig.ask(DeleteTopic(topic="t"))
    rig.loop.pass_time(CHECK_MS + LOOK_MS)
    is_behind = who in ("behind", "pending")
    found = rig.subscription()
    became = {
        *([REMOVED] if rig.is_removed(0) else []),
        *([ACKNOWLEDGED] if is_behind and found is not None and found.is_acknowledged(Offset(0), Offset(0)) else []),
        *([REFUSED] if rig.reason() is not None and is_behind else []),
    }
    assert became == TABLE[row][is_behind]
    assert rig.end(transaction, commit=commit) == DONE, "the end never fails for what was removed"
    if who == "pending" and ACKNOWLEDGED in became:
        assert found is not None
        assert found.is_acknowledged(Offset(0), Offset(0)), "an abort does not bring it back"
    assert not rig.failures


# --- what is kept -----------------------------------------------------------------------------------------------------


def test_the_slowest_subscription_keeps_and_the_log_begins_where_it_stands() -> None:
    rig = BacklogRig(**NONE_KEPT)
    rig.subscribe()
    rig.subscribe("fast")
    for _ in range(5):
        rig.write()
    rig.acknowledge(4, "fast")
    rig.acknowledge(2)
    rig.loop.pass_time(CHECK_MS)
    assert rig.start_offset == 2
    rig.ask(Unsubscribe(**where()))
    rig.loop.pass_time(CHECK_MS)
    assert rig.start_offset == 4
    rig.acknowledge(5, "fast")
    rig.crash()
    rig.loop.pass_time(CHECK_MS)
    assert rig.start_offset == 5
    assert rig.position("fast") == 5


def test_what_the_retention_keeps_anyway_is_not_in_the_quota() -> None:
    rig = BacklogRig(retention_ms="-1", pulsar_backlog_quota_bytes="0", pulsar_backlog_quota_ms="0")
    rig.subscribe()
    rig.write()
    rig.loop.pass_time(CHECK_MS)
    assert rig.reason() is None
    rig.configure({"retention_bytes": "0", "pulsar_backlog_quota_bytes": "0"})
    rig.loop.pass_time(LOOK_MS)
    assert rig.reason() is Rejection.BACKLOG_HOLDS_PRODUCERS


@pytest.mark.parametrize(("quota", "is_over"), [(19, True), (20, False), (-1, False)])
def test_the_quota_is_a_number_of_bytes(quota: int, is_over: bool) -> None:
    rig = BacklogRig(**NONE_KEPT, pulsar_backlog_quota_bytes=str(quota))
    rig.subscribe()
    for _ in range(3):
        rig.write()
    rig.acknowledge(1)
    rig.loop.pass_time(LOOK_MS)
    assert (rig.reason() is not None) is is_over


def test_the_quota_by_time_goes_by_the_oldest_message() -> None:
    rig = BacklogRig(**NONE_KEPT, pulsar_backlog_quota_ms="50000", pulsar_backlog_quota_policy=REFUSE)
    rig.subscribe()
    rig.write(age_ms=48_500)
    rig.write(age_ms=0)
    rig.loop.pass_time(LOOK_MS)
    assert rig.reason() is None
    rig.loop.pass_time(LOOK_MS)
    assert rig.reason() is Rejection.BACKLOG_QUOTA_EXCEEDED
    rig.acknowledge(1)
    rig.loop.pass_time(LOOK_MS)
    assert rig.reason() is None


@pytest.mark.parametrize(("policy", "reason"), backlog.REASONS.items())
def test_nothing_is_appended_until_less_is_kept(policy: backlog.QuotaAction, reason: Rejection) -> None:
    rig = BacklogRig(**NONE_KEPT, pulsar_backlog_quota_bytes="0", pulsar_backlog_quota_policy=policy.name.lower())
    rig.subscribe()
    transaction = rig.begin()
    rig.write(transaction=transaction)
    assert isinstance(rig.write(), Appended)
    rig.loop.pass_time(LOOK_MS)
    assert rig.reason() is None, "what an open transaction hides is in no backlog"
    assert rig.end(transaction) == DONE
    rig.loop.pass_time(LOOK_MS)
    assert rig.reason() is reason
    assert rig.write() is reason
    late = rig.begin()
    assert rig.write(transaction=late) is reason
    assert rig.end(late) == DONE, "a transaction ends where nothing is appended"
    rig.ask(Skip(**where(), before=Offset(-1)))
    rig.loop.pass_time(LOOK_MS)
    assert rig.reason() is None
    assert isinstance(rig.write(), Appended)


def test_a_restart_takes_batches_until_the_first_look() -> None:
    rig = BacklogRig(**NONE_KEPT, pulsar_backlog_quota_bytes="0")
    rig.subscribe()
    rig.write()
    rig.loop.pass_time(LOOK_MS)
    rig.crash()
    assert rig.reason() is None
    rig.loop.pass_time(LOOK_MS)
    assert rig.reason() is Rejection.BACKLOG_HOLDS_PRODUCERS


def test_without_its_subscription_a_partition_takes_batches_again() -> None:
    rig = BacklogRig(**NONE_KEPT, pulsar_backlog_quota_bytes="0")
    rig.subscribe()
    rig.write()
    rig.loop.pass_time(LOOK_MS)
    rig.ask(Unsubscribe(**where()))
    rig.loop.pass_time(LOOK_MS)
    assert rig.reason() is None
    rig.subscribe()
    rig.write()
    rig.loop.pass_time(LOOK_MS)
    assert rig.reason() is not None
    rig.ask(DeleteTopic(topic="t"))
    assert rig.reason() is None


def test_markers_and_aborted_records_are_in_no_backlog() -> None:
    rig = BacklogRig(**NONE_KEPT, pulsar_backlog_quota_bytes="0", pulsar_backlog_quota_ms="0")
    rig.subscribe()
    rig.write()
    aborted = rig.begin()
    for _ in range(5):
        rig.write(transaction=aborted)
    rig.end(aborted, commit=False)
    rig.acknowledge(1)
    rig.loop.pass_time(LOOK_MS)
    assert (rig.reason(), rig.position()) == (None, 7)
    for _ in range(2):
        aborted = rig.begin()
        rig.write(transaction=aborted)
        rig.end(aborted, commit=False)
    rig.write()
    rig.loop.pass_time(LOOK_MS)
    assert (rig.reason(), rig.position()) == (Rejection.BACKLOG_HOLDS_PRODUCERS, 11)


# --- eviction and expiry ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("quota", "position"), [(0, 5), (9, 4), (10, 4), (11, 3), (50, 0)])
def test_the_oldest_messages_are_evicted_until_so_much_is_kept(quota: int, position: int) -> None:
    rig = BacklogRig(**NONE_KEPT, pulsar_backlog_quota_bytes=str(quota), pulsar_backlog_quota_policy=EVICT)
    rig.subscribe()
    rig.subscribe("fast")
    for _ in range(5):
        rig.write()
    rig.acknowledge(3, "fast")
    rig.loop.pass_time(LOOK_MS)
    assert (rig.position(), rig.position("fast")) == (position, max(3, position))
    assert rig.start_offset == position
    assert isinstance(rig.write(), Appended)


def test_what_is_older_than_the_quota_is_evicted() -> None:
    rig = BacklogRig(**NONE_KEPT, pulsar_backlog_quota_ms="50000", pulsar_backlog_quota_policy=EVICT)
    rig.subscribe()
    for age_ms in (60_000, 60_000, 10_000):
        rig.write(age_ms=age_ms)
    rig.loop.pass_time(LOOK_MS)
    assert (rig.position(), rig.start_offset) == (2, 2)


def test_a_message_expires_for_every_subscription_and_is_kept_by_the_retention() -> None:
    rig = BacklogRig(retention_ms="-1", pulsar_message_ttl_ms="50000")
    rig.subscribe()
    rig.subscribe("fast")
    for age_ms in (60_000, 49_500, 10_000):
        rig.write(age_ms=age_ms)
    transaction = rig.begin()
    rig.write(age_ms=60_000, transaction=transaction)
    rig.acknowledge(1, "fast")
    rig.loop.pass_time(LOOK_MS)
    assert (rig.position(), rig.position("fast"), rig.start_offset) == (2, 2, 0)
    rig.loop.pass_time(50_000)
    assert rig.position() == 3, "what no consumer can see yet does not expire"
    assert rig.end(transaction) == DONE
    rig.loop.pass_time(LOOK_MS)
    assert rig.position() == 4, "the marker is young"


def test_the_operator_is_told_what_acts_and_which_subscription_is_behind(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, logger="exacta.engine.backlog")
    rig = BacklogRig(**NONE_KEPT, pulsar_backlog_quota_bytes="0")
    rig.subscribe("slow\n")
    rig.write()
    rig.loop.pass_time(LOOK_MS * 3)
    rig.configure({**NONE_KEPT, "pulsar.backlog.quota.bytes": "0", "pulsar.backlog.quota.policy": EVICT})
    rig.loop.pass_time(LOOK_MS * 3)
    told = [each.getMessage() for each in caplog.records]
    assert len(told) == 3, "each is told once"
    assert "no batches are taken any more" in told[0]
    assert r"'slow\n'" in told[0]
    assert "go on at 1" in told[1]
    assert "batches are taken again" in told[2]


def test_a_kafka_topic_costs_no_look(monkeypatch: pytest.MonkeyPatch) -> None:
    def look(self: object, *rest: object) -> None:
        raise AssertionError("nobody subscribes")

    monkeypatch.setattr(backlog.Backlogs, "_look", look)
    rig = BacklogRig(**NONE_KEPT, pulsar_message_ttl_ms="1", pulsar_backlog_quota_bytes="0")
    rig.write()
    rig.loop.pass_time(LOOK_MS * 3)
    assert not rig.failures


def test_an_engine_that_stops_in_the_midst_of_a_round_looks_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = BacklogRig()
    rig.ask(CreateTopic(topic="u", topic_id=b"1" * 16, partition_count=backlog.PARTITIONS_AT_ONCE, configs={}))
    for partition in range(backlog.PARTITIONS_AT_ONCE):
        rig.ask(Subscribe(topic="u", partition=partition, subscription="s", subscription_type=SubscriptionType.SHARED))
    rig.subscribe()
    looked: list[object] = []

    def look(self: backlog.Backlogs, partition: object, *rest: object) -> None:
        looked.append(partition)
        rig.engine.close(lambda: None)

    monkeypatch.setattr(backlog.Backlogs, "_look", look)
    rig.loop.pass_time(LOOK_MS)
    assert len(looked) == backlog.PARTITIONS_AT_ONCE
