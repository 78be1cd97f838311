"""`/metrics` of a running broker: every metric of the table, with true numbers, and no other."""

import contextlib
import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from exacta.metrics.families import FAMILIES, OTHERS, MetricKind
from tests.server.test_server import Process
from tests.waiting import wait_until


class Scraped:
    """One scrape."""

    def __init__(self, url: str) -> None:
        with urllib.request.urlopen(f"{url}/metrics", timeout=30) as answer:
            self.media_type = answer.headers["content-type"]
            self.metrics: dict[str, Metric] = {
                each.name: each for each in text_string_to_metric_families(answer.read().decode())
            }
        self.values = {
            (sample.name, *sorted(sample.labels.values())): sample.value
            for metric in self.metrics.values()
            for sample in metric.samples
        }

    def __getitem__(self, key: str | tuple[str, ...]) -> float:
        return self.values[(key,) if isinstance(key, str) else key]


class Served(Process):
    """A server with a web front, and nothing of Pulsar's."""

    def __init__(self, data: Path, *arguments: str) -> None:
        super().__init__(data, "--web-listen", "127.0.0.1:0", *arguments)
        assert self.process.stdout is not None
        self.url = f"http://{self.process.stdout.readline().split()[-1]}"
        self.bootstrap_servers = "{}:{}".format(*self.address)

    def producer(self, transactional_id: str) -> Producer:
        producer = Producer({"bootstrap.servers": self.bootstrap_servers, "transactional.id": transactional_id})
        producer.init_transactions(20)
        return producer

    def write(self, producer: Producer, topic: str, count: int) -> None:
        producer.begin_transaction()
        for _ in range(count):
            producer.produce(topic, b"x" * 100)
        assert producer.flush(20) == 0


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    server = Served(tmp_path_factory.mktemp("data"), "--set", "web.metrics.max.series=2")
    yield server
    server.clean_up()


def test_every_metric_of_the_table_is_there_with_its_kind_and_labels(served: Served) -> None:
    scraped = Scraped(served.url)
    assert scraped.media_type.startswith("text/plain; version=")
    ours = {name: metric for name, metric in scraped.metrics.items() if name.startswith("exacta_")}
    alone = {name: family for name, family in FAMILIES.items() if not name.startswith("exacta_cluster_")}
    assert set(ours) == {name.removesuffix("_total") for name in alone}
    for name, family in alone.items():
        metric = ours[name.removesuffix("_total")]
        assert (metric.type, metric.documentation) == (family.kind.value, family.help)
        for sample in metric.samples:
            assert set(sample.labels) - {"le"} == set(family.labels)
    assert scraped["process_cpu_seconds_total"] > 0


def test_open_transactions_lag_and_traffic_are_those_of_the_clients(served: Served) -> None:
    done, held = served.producer("done"), served.producer("held")
    served.write(done, "orders", 5)
    done.commit_transaction(20)
    settings = {"bootstrap.servers": served.bootstrap_servers, "group.id": "billing"}
    settings |= {"auto.offset.reset": "earliest", "enable.auto.commit": "false"}
    consumer = Consumer(settings)
    consumer.subscribe(["orders"])
    message = consumer.poll(20)
    assert message is not None
    consumer.commit(message, asynchronous=False)
    served.write(held, "orders", 3)
    wait_until(lambda: Scraped(served.url)["exacta_group_held_back_records", "billing", "orders"] == 3, 20)
    scraped = Scraped(served.url)
    assert scraped["exacta_topic_in_records_total", "orders"] == 8
    assert scraped["exacta_topic_in_bytes_total", "orders"] > 800
    assert scraped["exacta_topic_out_bytes_total", "orders"] > 500
    assert scraped["exacta_transactions_open"] == 1
    assert scraped["exacta_topic_transactions_open", "orders"] == 1
    assert 0 < scraped["exacta_topic_transactions_oldest_seconds", "orders"] < 60
    assert scraped["exacta_topic_held_back_offsets", "orders"] == 3
    assert scraped["exacta_partitions_with_late_transactions"] == 0
    assert scraped["exacta_group_lag_records", "billing", "orders"] == 4
    assert scraped["exacta_group_members", "billing"] == 1
    assert scraped["exacta_transactions_ended_total", "committed", "owner"] == 1
    assert scraped["exacta_request_duration_seconds_count", "EndTxn", "kafka"] == 1
    assert scraped["exacta_journal_sync_duration_seconds_count"] > 0
    assert scraped["exacta_connections", "kafka"] > 0
    held.abort_transaction(20)
    consumer.close()
    scraped = Scraped(served.url)
    assert scraped["exacta_group_held_back_records", "billing", "orders"] == 0
    assert scraped["exacta_group_lag_records", "billing", "orders"] == 4
    assert scraped["exacta_transactions_oldest_seconds"] == 0
    assert scraped["exacta_transactions_ended_total", "aborted", "owner"] == 1
    assert scraped["exacta_transactions_ended_total", "aborted", "time_out"] == 0


def test_a_producer_that_is_fenced_is_counted_by_the_cause(served: Served) -> None:
    before = Scraped(served.url)["exacta_producers_fenced_total", "new_instance"]
    served.producer("twice")
    served.producer("twice")
    assert Scraped(served.url)["exacta_producers_fenced_total", "new_instance"] == before + 1


def test_the_other_topics_are_one_series(served: Served) -> None:
    producer = served.producer("many")
    for number in range(4):
        served.write(producer, f"topic-{number}", number + 1)
        producer.commit_transaction(20)
    scraped = Scraped(served.url)
    samples = scraped.metrics["exacta_topic_in_records"].samples
    assert len(samples) == 3
    assert {"topic-3", OTHERS} < {sample.labels["topic"] for sample in samples}


def test_openmetrics_is_made_for_who_asks_for_it(served: Served) -> None:
    request = urllib.request.Request(f"{served.url}/metrics", headers={"Accept": "application/openmetrics-text"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.headers["content-type"].startswith("application/openmetrics-text")
        assert answer.read().endswith(b"# EOF\n")


def test_health_says_that_it_lives_and_is_ready(served: Served) -> None:
    for path, status in (("live", "live"), ("ready", "ready")):
        with urllib.request.urlopen(f"{served.url}/health/{path}", timeout=30) as answer:
            assert json.load(answer)["status"] == status


def test_all_counters_begin_at_nothing_or_have_no_series(tmp_path: Path) -> None:
    server = Served(tmp_path / "data")
    with contextlib.closing(_Ended(server)):
        wait_until(lambda: Scraped(server.url)["exacta_ready"] == 1, 20)
        scraped = Scraped(server.url)
        counters = {name for name, family in FAMILIES.items() if family.kind is MetricKind.COUNTER}
        grown = {key[0] for key, value in scraped.values.items() if key[0] in counters and value}
        assert grown == {"exacta_connections_accepted_total"}


class _Ended:
    def __init__(self, server: Process) -> None:
        self.close = server.clean_up
