"""Whole runs in which Pulsar's clients take part, beside Kafka's; see `test_run.py`."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import exacta
from exacta.client.routing import Client
from exacta.client.security import Cluster
from exacta.protocol.kafka import record_reading
from exacta.pulsar import sending
from exacta.records.conversion import into_pulsar
from exacta.verify.analysis.anomalies import Kind
from exacta.verify.analysis.verdict import Verdict
from exacta.verify.campaign.run import Campaign
from exacta.verify.campaign.settings import CampaignError, CampaignSettings
from exacta.verify.history import Isolation, Poll, Workload
from exacta.verify.history_file import read_history
from tests.conformance.brokers import free_port
from tests.pulsar.wire import running
from tests.verify.served import served_to_both
from tests.verify.test_run import SECONDS, explained, run


@pytest.fixture
def broker() -> Iterator[exacta.Broker]:
    with running(group_initial_rebalance_delay_ms=0) as started:
        yield started


def run_on(broker: exacta.Broker, directory: Path, **settings: Any) -> tuple[Verdict, Path]:
    return run(broker.bootstrap_servers, directory, pulsar_url=broker.pulsar_url, **settings)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("buffer", ["", "sidecar"])
def test_nothing_is_found_and_nothing_is_left_behind(buffer: str, broker: exacta.Broker, tmp_path: Path) -> None:
    verdict, path = run_on(
        broker,
        tmp_path / "run",
        most_commits=200,
        least_faults=3,
        kill_clients_every_s=2.0,  # of more kinds than Kafka's alone, which must all commit between two deaths
        transaction_buffer=buffer,
    )
    assert verdict.passed, explained(verdict)
    assert verdict.figures["records at the end, pulsar"] == verdict.figures["records at the end, read_committed"]
    readers = {op.process for op in read_history(path) if isinstance(op, Poll) and op.isolation is Isolation.PULSAR}
    assert readers == {"reader-pulsar", "final-pulsar"}
    with Client(broker.bootstrap_servers) as client:
        assert client.topic_names() == []


@pytest.mark.timeout(300)
def test_nothing_is_found_where_the_broker_is_killed(tmp_path: Path) -> None:
    with served_to_both(tmp_path) as (broker, url):
        verdict, _ = run(
            broker.bootstrap,
            tmp_path / "run",
            pulsar_url=url,
            most_commits=60,
            least_faults=4,
            kill=str(broker.pid_file),
            restart_command=broker.restart_command,
            restart_every_s=2.0,
            kill_clients_every_s=0,
        )
    assert verdict.passed, explained(verdict)
    assert verdict.faults["broker killed"] >= 2


def sent_outside_of_transactions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sending, "txn_id_of_part", lambda command: None)


def records_at_wrong_places(patch: pytest.MonkeyPatch) -> None:
    read = record_reading.read_records

    def turned_round(*given: Any) -> list[Any]:
        records = read(*given)
        return [(record[0], *other[1:]) for record, other in zip(records, reversed(records), strict=True)]

    patch.setattr(into_pulsar, "read_records", turned_round)


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("damage", "workload", "kind"),
    [
        (sent_outside_of_transactions, Workload.TRANSFER, Kind.ABORTED_READ),
        (records_at_wrong_places, Workload.APPEND, Kind.INCONSISTENT_OFFSET),
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
    with running(group_initial_rebalance_delay_ms=0) as broker:
        verdict, _ = run_on(
            broker, tmp_path / "run", workloads=(workload,), most_commits=60, kill_clients_every_s=0, keep_topics=True
        )
    assert kind in verdict.anomalies, explained(verdict)


def test_an_address_at_which_nobody_speaks_pulsars_protocol_ends_the_run(broker: exacta.Broker, tmp_path: Path) -> None:
    settings = CampaignSettings(seed=1, directory=tmp_path / "run", pulsar_url=f"pulsar://127.0.0.1:{free_port()}")
    with pytest.raises(CampaignError, match="does not answer Pulsar's clients"):
        Campaign(Cluster(bootstrap=broker.bootstrap_servers), settings, "test", lambda text: None).run()
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(not SECONDS, reason="make test-with WHAT=verify")
@pytest.mark.timeout(SECONDS + 900)
def test_a_long_run(tmp_path: Path, reports: list[str]) -> None:
    with served_to_both(tmp_path) as (broker, url):
        verdict, path = run(
            broker.bootstrap,
            tmp_path / "run",
            pulsar_url=url,
            duration_s=SECONDS,
            rate=10.0,
            kill=str(broker.pid_file),
            restart_command=broker.restart_command,
            restart_every_s=4.0,
        )
    reports.append(f"exacta verify, with Pulsar's clients: {verdict.figures}, {verdict.faults}; {path}")
    assert verdict.passed, explained(verdict)
