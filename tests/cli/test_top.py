"""`exacta top`: what one look holds, the rates between two, and what is shown of it."""

import io
import json
from types import SimpleNamespace

from confluent_kafka import Producer
from rich.console import Console

from exacta.cli.top import as_shown, screen
from exacta.client.group_offsets import commit_offsets
from exacta.client.overview import GroupView, Overview, TopicView, TransactionOverview, rates
from exacta.client.routing import Client
from exacta.client.transactions import TopicPartition


def an_overview(at_s, **ends):
    topics = {name: TopicView(2, end, 0) for name, end in ends.items()}
    groups = {"slow": GroupView(9, 0, True), "fast": GroupView(0, 0, True)}
    return Overview(at_s, 1, topics, groups, (TransactionOverview("[/red]\n", 0, 3),))


def test_rates_are_what_topics_grew_by():
    before = an_overview(10.0, grows=100, rests=7, again=50)
    after = an_overview(12.0, grows=150, rests=7, again=3, new=8)
    assert rates(before, after) == {"grows": 25.0, "rests": 0.0, "again": 0.0, "new": 4.0}


def shown(told, most_rows):
    out = io.StringIO()
    Console(file=out, width=100).print(screen(told, most_rows))
    return out.getvalue()


def test_what_matters_most_is_shown_first_and_the_rest_is_counted():
    before, after = an_overview(0, a=0, b=0, c=0), an_overview(1, a=1, b=30, c=2)
    told = as_shown((after, rates(before, after)), "here:1")
    assert [each["topic"] for each in told["topics"]] == ["b", "c", "a"]
    assert [each["group"] for each in told["groups"]] == ["slow", "fast"]
    text = shown(told, most_rows=1)
    assert text.startswith("here:1: 1 broker, 3 topics, 2 groups, 1 open transaction\n")
    assert "and 2 topics more" in text
    assert "and 1 group more" in text
    assert r"[/red]\n" in text
    assert "and" not in shown(told, most_rows=9).partition("\n")[2]


def test_a_cluster_is_watched(run, topic):
    producer = Producer({"bootstrap.servers": run.bootstrap, "transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    for number in range(4):
        producer.produce(topic, b"open", partition=number % 2)
    assert producer.flush(30) == 0
    with Client(run.bootstrap) as client:
        commit_offsets(client, topic, {TopicPartition(topic, 0): 0})
    first, second = map(json.loads, run("top", "-c", "2", "--interval", "0.1", "--output", "json").splitlines())
    for told in (first, second):
        (found,) = (each for each in told["topics"] if each["topic"] == topic)
        assert (found["partitions"], found["end_offsets"], found["held_back"]) == (2, 4, 4)
        (group,) = (each for each in told["groups"] if each["group"] == topic)
        assert (group["unread"], group["held_back"]) == (0, 2)
        (transaction,) = (each for each in told["transactions"] if each["transaction"] == topic)
        assert transaction["partitions"] == 2
    assert [each["per_second"] for each in first["topics"] if each["topic"] == topic] == [None]
    assert [each["per_second"] for each in second["topics"] if each["topic"] == topic] == [0.0]
    assert topic in run("top", "-c", "1")
    producer.abort_transaction(30)
    del producer


def test_no_interval_is_too_long(run, monkeypatch):
    slept: list[float] = []
    monkeypatch.setattr("exacta.cli.top.time", SimpleNamespace(sleep=slept.append))
    run("top", "-c", "2", "--interval", "inf")
    assert slept == [86_400.0]
