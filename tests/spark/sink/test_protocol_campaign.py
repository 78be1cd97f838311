"""A stand-in for Spark is killed again and again, and every row comes out exactly once."""

import itertools
import random
import threading
from collections import Counter

import pytest

from exacta.client.routing import Client
from exacta.client.topics import LATEST, list_offsets
from exacta.client.transactions import TopicPartition
from tests.conformance.brokers import ON_KAFKA, broker_process
from tests.shares import share_of
from tests.spark.clusters import check_exactly, new_topic, read_committed
from tests.spark.standin import BETWEEN_THE_ENDS, CRASH_POINTS, Campaign

KILLS = 5
"""The deaths of the broker in a campaign; the whole has two hundred."""

ONLY_EXACTA = pytest.mark.skipif(ON_KAFKA, reason="sidecar topics are Exacta's")


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("seed", share_of(range(10)))
@pytest.mark.parametrize(("scope", "shuffled"), [("task", False), ("task", True), ("batch", True)])
def test_every_row_once_whatever_is_killed(bootstrap, seed, scope, shuffled):
    topic = new_topic(bootstrap)
    campaign = Campaign(bootstrap, topic, seed=seed, scope=scope, shuffled=shuffled)
    campaign.run()
    assert sum(campaign.crashes.values()) > 0
    check_exactly(bootstrap, topic, campaign.expected)


@pytest.mark.sweep
@ONLY_EXACTA
@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("scope", ["task", "batch"])
def test_every_row_once_in_a_sidecar_topic(bootstrap, scope):
    topic = new_topic(bootstrap, transaction_buffer="sidecar")
    campaign = Campaign(bootstrap, topic, seed=1, scope=scope)
    campaign.run()
    assert sum(campaign.crashes.values()) > 0
    check_exactly(bootstrap, topic, campaign.expected)
    with Client(bootstrap) as client:
        places = [TopicPartition(topic, partition) for partition in range(3)]
        ends = list_offsets(client, places, LATEST)
    assert sum(ends.values()) == len(campaign.expected), "no marker, and nothing that was aborted, has an offset"


@pytest.mark.parametrize("point", share_of(CRASH_POINTS))
def test_every_row_once_where_the_driver_dies_at_one_point_again_and_again(bootstrap, way, point):
    topic = new_topic(bootstrap)
    campaign = Campaign(bootstrap, topic, seed=1, batches=6, points=(point,))
    campaign.run()
    # Where all end at once, there is something between only for an attempt that was repeated.
    assert campaign.crashes.get(point, 0) > 0 or (way, point) == ("at once", BETWEEN_THE_ENDS)
    check_exactly(bootstrap, topic, campaign.expected)


def test_the_campaign_finds_a_planted_fault(bootstrap, monkeypatch):
    """Tasks that never ask whether their rows are committed already write some of them twice."""
    monkeypatch.setattr("exacta.spark.sink.task._is_committed", lambda *_: False)
    topic = new_topic(bootstrap)
    Campaign(bootstrap, topic, seed=1, crash_chance=0.8).run()
    counts = Counter(int(value) for _, _, value in read_committed(bootstrap, topic))
    assert [row for row, count in counts.items() if count > 1] != []


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("seed", share_of(range(10)))
@pytest.mark.parametrize("configs", [{}, pytest.param({"transaction_buffer": "sidecar"}, marks=ONLY_EXACTA)])
def test_every_row_once_while_the_broker_is_killed_as_well(tmp_path, seed, configs):
    with broker_process(tmp_path) as broker:
        topic = new_topic(broker.bootstrap, **configs)
        campaign = Campaign(broker.bootstrap, topic, seed=seed, batches=12)
        steps, ended, crashes = threading.Semaphore(0), threading.Event(), itertools.count()
        campaign.at_each_point = steps.release

        def crash():
            # A step or two of the protocol between two deaths, each while the next step is under way.
            dice = random.Random(seed)
            for _ in range(KILLS):
                for _ in range(dice.randrange(2, 12)):
                    steps.acquire()
                if ended.is_set():
                    return
                broker.restart_killed()
                next(crashes)

        nemesis = threading.Thread(target=crash)
        nemesis.start()
        try:
            campaign.run()
        finally:
            ended.set()
            steps.release(1_000)
            nemesis.join()
        assert next(crashes) == KILLS
        check_exactly(broker.bootstrap, topic, campaign.expected)
