"""Whole runs: nothing is found on Exacta, also where it is killed; what is broken on purpose is found.

A run of a test ends when enough transactions are committed and enough faults are over, not by the clock.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import exacta
from exacta.client import topics
from exacta.client.errors import KafkaError
from exacta.client.routing import Client
from exacta.client.security import Cluster
from exacta.core import apply
from exacta.core.commands import AppendBatch
from exacta.core.events import Event, TransactionEnded
from exacta.core.groups import committing
from exacta.core.groups.reading import positions
from exacta.core.log import append, staging
from exacta.core.rejections import Rejection
from exacta.core.state import partition as partition_state
from exacta.core.state import state
from exacta.core.state.group import merge
from exacta.core.transactions import fold, transaction
from exacta.core.transactions.ending import ending
from exacta.core.writers import IdempotentWriter
from exacta.engine import fetch_plan
from exacta.kafka.handlers import k09_offset_fetch
from exacta.protocol.kafka.errors import ErrorCode
from exacta.verify.analysis.anomalies import Kind
from exacta.verify.analysis.verdict import Verdict, analyse
from exacta.verify.campaign import cluster
from exacta.verify.campaign import run as campaign_run
from exacta.verify.campaign.run import Campaign
from exacta.verify.campaign.settings import CampaignError, CampaignSettings
from exacta.verify.history import NEVER_ENDED, Isolation, Op, Poll, Workload
from exacta.verify.history_file import read_history
from tests.verify.served import served

SECONDS = float(os.environ.get("EXACTA_TEST_VERIFY", "0"))
KILLED_EVERY_S = 20.0 if os.environ.get("EXACTA_TEST_BROKER") == "kafka" else 1.0
"""The mean time between kills in a long run: hundreds of kills in ten minutes, if a start takes no longer than a
blink."""

ONLY_EXACTA = pytest.mark.skipif(os.environ.get("EXACTA_TEST_BROKER") == "kafka", reason="sidecar topics are Exacta's")


@pytest.fixture
def bootstrap() -> Iterator[str]:
    with exacta.Broker(group_initial_rebalance_delay_ms=0) as broker:
        yield broker.bootstrap_servers


def run(bootstrap: str, directory: Path, **settings: Any) -> tuple[Verdict, Path]:
    directory.mkdir()
    given = {"seed": 1, "producers": 1, "rate": 30.0, "duration_s": 200.0, "directory": directory, **settings}
    path = Campaign(Cluster(bootstrap=bootstrap), CampaignSettings(**given), "test", lambda text: None).run()
    return analyse(read_history(path)), path


def explained(verdict: Verdict) -> object:
    return verdict.unchecked, [each.message for kind in verdict.anomalies for each in verdict.examples[kind]]


def as_if_committed(history: Iterator[Op]) -> Iterator[Op]:
    """Pretend that a read_committed reader got what a read_uncommitted one has got."""
    for op in history:
        live = isinstance(op, Poll) and not op.final and op.isolation is Isolation.UNCOMMITTED
        yield msgspec.structs.replace(op, isolation=Isolation.COMMITTED) if live else op


@pytest.mark.parametrize("buffer", ["", "sidecar"])
def test_nothing_is_found_and_nothing_is_left_behind(buffer: str, bootstrap: str, tmp_path: Path) -> None:
    verdict, path = run(
        bootstrap,
        tmp_path / "run",
        most_commits=60,
        least_faults=2,
        kill_clients_every_s=0.5,
        transaction_buffer=buffer,
    )
    assert verdict.passed, explained(verdict)
    assert verdict.faults["client killed"] >= 2
    assert verdict.figures["of them zombies'"] > 0
    assert verdict.figures["transactions committed"] >= 60
    with Client(bootstrap) as client:
        assert client.topic_names() == []
    if buffer:
        assert verdict.counts == {}, "what every Kafka is allowed does not happen on sidecar topics"
        return
    wrong = analyse(as_if_committed(read_history(path)))
    assert Kind.ABORTED_READ in wrong.anomalies
    assert Kind.DIRTY_READ in wrong.anomalies


@pytest.mark.timeout(300)
@pytest.mark.parametrize("buffer", ["", pytest.param("sidecar", marks=ONLY_EXACTA)])
def test_nothing_is_found_where_the_broker_is_killed(buffer: str, tmp_path: Path) -> None:
    with served(tmp_path) as broker:
        verdict, _ = run(
            broker.bootstrap,
            tmp_path / "run",
            most_commits=100,
            least_faults=6,
            kill=str(broker.pid_file),
            restart_command=broker.restart_command,
            restart_every_s=1.5,
            # A group waits for a killed member until its session ends, and sessions begin again with each start (0025):
            # a broker that is killed so often would never let one end. The suite `verify` kills both.
            kill_clients_every_s=0,
            transaction_buffer=buffer,
        )
    assert verdict.passed, explained(verdict)
    assert verdict.faults["broker killed"] >= 2
    assert verdict.faults["restart command"] == verdict.faults["broker killed"]


def test_a_client_that_does_not_end_is_killed_and_the_report_says_so(
    bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign_run, "_STOP_WITHIN_S", 0.0)
    verdict, _ = run(bootstrap, tmp_path / "run", workloads=(Workload.TRANSFER,), most_commits=10)
    assert verdict.passed, explained(verdict)
    assert verdict.faults[NEVER_ENDED] >= 1


def test_topics_are_deleted_where_not_all_of_them_can_be_made(
    bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def create_topic(client: Client, topic: str, **more: Any) -> bool:
        if made:
            raise KafkaError(ErrorCode.POLICY_VIOLATION, "no more topics")
        made.append(topic)
        return topics.create_topic(client, topic, **more)

    said: list[str] = []
    monkeypatch.setattr(cluster, "create_topic", create_topic)
    settings = CampaignSettings(seed=1, directory=tmp_path)
    with pytest.raises(CampaignError, match="no more topics"):
        Campaign(Cluster(bootstrap=bootstrap), settings, "test", said.append).run()
    assert len(made) == 1
    with Client(bootstrap) as client:
        assert client.topic_names() == []
    assert said == []


def no_aborted_transactions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(fetch_plan, "aborted_between", lambda *_: ())


def no_last_stable_offset(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(partition_state.Partition, "last_stable_offset", property(lambda partition: partition.next_offset))


def offsets_that_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(fold, "merge", lambda offsets, pending, at_ms: None)


def commits_that_abort(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(transaction, "ending", lambda *given, commit, **more: ending(*given, commit=False, **more))


def aborts_that_keep_offsets(patch: pytest.MonkeyPatch) -> None:
    ended = fold._transaction_ended

    def keep(given: state.State, event: TransactionEnded) -> None:
        for group in given.groups.values():
            merge(group.offsets, group.pending.get(event.transaction_id, {}), event.at_ms)
        ended(given, event)

    kind: type[Event] = TransactionEnded
    patch.setitem(apply._APPLY, kind, keep)


def writes_that_nobody_fences(patch: pytest.MonkeyPatch) -> None:
    check = append._check_producer

    def lenient(
        given: state.State,
        partition: partition_state.Partition,
        command: AppendBatch,
        writer: IdempotentWriter,
        now_ms: int,
    ) -> object:
        refused = check(given, partition, command, writer, now_ms)
        return transaction.Extension() if refused is Rejection.INVALID_PRODUCER_EPOCH else refused

    patch.setattr(append, "_check_producer", lenient)


def sidecar_topics_that_are_marker_topics(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(staging, "stages", lambda *_: False)


def offsets_of_any_generation(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(committing, "check_generation", lambda *_: None)


def offsets_that_are_pending_and_told(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(k09_offset_fetch, "positions", lambda *given, require_stable: positions(*given, require_stable=False))


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("damage", "workload", "kind"),
    [
        (aborts_that_keep_offsets, Workload.ETL, Kind.OFFSET_AND_DATA_APART),
        (writes_that_nobody_fences, Workload.APPEND, Kind.ABORTED_READ),
        (no_aborted_transactions, Workload.APPEND, Kind.ABORTED_READ),
        (no_last_stable_offset, Workload.APPEND, Kind.DIRTY_READ),
        (offsets_that_are_forgotten, Workload.ETL, Kind.OFFSET_AND_DATA_APART),
        (commits_that_abort, Workload.TRANSFER, Kind.LOST_WRITE),
    ],
)
def test_a_broken_broker_is_found_out(
    damage: Callable[[pytest.MonkeyPatch], None],
    workload: Workload,
    kind: Kind,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    damage(monkeypatch)
    with exacta.Broker(group_initial_rebalance_delay_ms=0) as broker:
        verdict, _ = run(
            broker.bootstrap_servers,
            tmp_path / "run",
            workloads=(workload,),
            most_commits=60,
            kill_clients_every_s=0,
            keep_topics=True,
        )
    assert kind in verdict.anomalies, explained(verdict)


@pytest.mark.timeout(180)
def test_a_broker_that_writes_sidecar_topics_in_place_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sidecar_topics_that_are_marker_topics(monkeypatch)
    with exacta.Broker(group_initial_rebalance_delay_ms=0) as broker:
        verdict, _ = run(
            broker.bootstrap_servers,
            tmp_path / "run",
            workloads=(Workload.APPEND,),
            producers=3,
            most_commits=80,
            kill_clients_every_s=0,
            transaction_buffer="sidecar",
        )
    # Whether records of two transactions stand between each other is up to chance: planted histories have that kind.
    wanted = {Kind.NOT_IN_COMMIT_ORDER, Kind.DIRTY_READ, Kind.ABORTED_READ}
    assert wanted <= set(verdict.anomalies), explained(verdict)


@pytest.mark.skipif(not SECONDS, reason="make test-with WHAT=verify")
@pytest.mark.parametrize("damage", [offsets_of_any_generation, offsets_that_are_pending_and_told])
@pytest.mark.timeout(300)
def test_a_member_that_dawdles_finds_out_who_lets_it_work_on(
    damage: Callable[[pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage(monkeypatch)
    with exacta.Broker(group_initial_rebalance_delay_ms=0) as broker:
        verdict, _ = run(
            broker.bootstrap_servers,
            tmp_path / "run",
            workloads=(Workload.ETL,),
            producers=2,
            duration_s=75.0,
            kill_clients_every_s=0,
            dawdle_chance=0.03,
        )
    assert verdict.faults["member dawdles"] > 0
    assert verdict.anomalies == [Kind.OFFSET_AND_DATA_APART], explained(verdict)


@pytest.mark.skipif(not SECONDS, reason="make test-with WHAT=verify")
@pytest.mark.timeout(SECONDS + 900)
def test_a_long_run(tmp_path: Path, reports: list[str]) -> None:
    with served(tmp_path) as broker:
        verdict, path = run(
            broker.bootstrap,
            tmp_path / "run",
            duration_s=SECONDS,
            producers=2,
            rate=float(os.environ.get("EXACTA_TEST_VERIFY_RATE", "10")),
            kill=str(broker.pid_file),
            restart_command=broker.restart_command,
            restart_every_s=KILLED_EVERY_S,
        )
    allowed = {kind.title: verdict.counts[kind] for kind in verdict.information}
    reports.append(f"exacta verify: {verdict.figures}, {verdict.faults}, allowed: {allowed}; {path}")
    assert verdict.passed, explained(verdict)
