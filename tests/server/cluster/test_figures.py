"""What operators are shown of brokers of a cluster: by health, by metrics, and by the figures behind them."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from exacta.metrics.families import FAMILIES
from exacta.server.cluster.figures import ClusterFigures
from exacta.server.cluster.roles import BrokerRole
from tests.server.cluster.brokers import Brokers


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[Brokers]:
    with Brokers(tmp_path, fronts=("web",)) as found:
        yield found


def asked(brokers: Brokers, node_id: int, path: str) -> tuple[int, str]:
    """Return the status and the text of an answer by HTTP."""
    try:
        with urllib.request.urlopen(f"http://{brokers.address(node_id, 'web')}{path}", timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()


def test_health_and_metrics_tell_the_role_and_that_a_broker_is_out_of_touch(brokers: Brokers) -> None:
    brokers.start(1)
    brokers.leader()
    brokers.start(2)
    brokers.followers()
    for node_id, role, leads in ((1, "leader", 1), (2, "follower", 0)):
        status, text = asked(brokers, node_id, "/health/ready")
        assert (status, json.loads(text)["role"]) == (200, role)
        _, metrics = asked(brokers, node_id, "/metrics")
        assert f"exacta_cluster_leads {leads}" in metrics
        assert "exacta_cluster_brokers 2" in metrics
        for name in FAMILIES:
            if name.startswith("exacta_cluster_"):
                assert f"# TYPE {name.removesuffix('_total')}" in metrics
    brokers.on_loop(brokers.wires[2].cut)
    brokers.until(lambda: not brokers.servers[2].cluster.in_touch, "it is in touch")
    assert asked(brokers, 2, "/health/ready")[0] == 503
    assert asked(brokers, 2, "/health/live")[0] == 200
    assert "exacta_cluster_in_touch 0" in asked(brokers, 2, "/metrics")[1]


def test_the_age_of_the_tail_is_the_time_since_the_log_went_beyond_its_beginning() -> None:
    now = [0.0]
    has: Any = SimpleNamespace(position=0, tail_from=0, catalog=3)
    cluster: Any = SimpleNamespace()
    figures = ClusterFigures(cluster, has, lambda: now[0])
    for second, position in enumerate((0, 100, 100, 200, 300)):
        now[0], has.position = float(second), position
        assert figures.look().position == position
    assert (figures.tail_bytes, figures.tail_seconds) == (300, 3.0)
    has.tail_from = 100
    assert (figures.tail_bytes, figures.tail_seconds) == (200, 1.0)
    has.tail_from = 300
    assert (figures.tail_bytes, figures.tail_seconds) == (0, 0.0)


def test_a_broker_that_is_neither_leader_nor_follower_answers_as_while_it_recovers(brokers: Brokers) -> None:
    server = brokers.start(1)
    brokers.leader()
    brokers.on_loop(brokers.wires[1].cut)
    brokers.on_loop(brokers.database.restart)
    brokers.until(lambda: server.role is BrokerRole.RESTING, "it does not rest")
    status, text = asked(brokers, 1, "/health/ready")
    assert (status, json.loads(text)["status"]) == (503, "recovering")
    assert "exacta_ready 0" in asked(brokers, 1, "/metrics")[1]
    assert asked(brokers, 1, "/admin/v2/clusters")[0] == 503
    brokers.on_loop(brokers.wires[1].mend)
    brokers.leader()
    assert asked(brokers, 1, "/health/ready")[0] == 200
