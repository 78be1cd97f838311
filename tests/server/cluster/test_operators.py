"""What operators see of several brokers and do to them, by `exacta cluster status` and `exacta cluster move`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from exacta.cli.app import app
from exacta.server.cluster import server as cluster_server
from tests.server.cluster.brokers import Brokers
from tests.server.cluster.test_server import Writer


@pytest.fixture
def brokers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Brokers]:
    monkeypatch.setattr(cluster_server, "REST_S", 0.05)
    with Brokers(tmp_path) as found:
        yield found


def start(brokers: Brokers, count: int) -> tuple[int, list[int]]:
    """Start brokers with the ids 1 to `count`, and return the leader and the followers."""
    for node_id in range(1, count + 1):
        options: dict[str, Any] = {"broker.rack": f"rack {node_id}"}
        brokers.start(node_id, **options)
    return brokers.leader(), brokers.followers()


def run(brokers: Brokers, node_id: int, *words: str) -> Result:
    return CliRunner().invoke(app, ["cluster", *words, "-b", brokers.address(node_id)])


def status(brokers: Brokers, node_id: int) -> dict[str, Any]:
    result = run(brokers, node_id, "status", "--output", "json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_every_broker_tells_who_leads_and_how_far_each_has_come(brokers: Brokers) -> None:
    leader, [follower] = start(brokers, 2)
    Writer(brokers.address(leader)).write()
    brokers.until_all_have_followed()
    for asked in (leader, follower):
        found = status(brokers, asked)
        assert (found["answered_by"], found["leader"], found["is_shared"]) == (asked, leader, True)
        assert found["role"] == ("leader" if asked == leader else "follower")
        assert found["epoch"] == 1
        assert found["tail_bytes"] > 0
        for each in found["brokers"]:
            assert each["is_live"]
            assert each["leads"] == (each["node_id"] == leader)
            assert each["rack"] == f"rack {each['node_id']}"
            assert each["addresses"] == {"PLAINTEXT": brokers.address(each["node_id"])}
            assert each["release"]
            assert each["behind_bytes"] + each["position"] == max(one["position"] for one in found["brokers"])
    shown = run(brokers, follower, "status").stdout
    assert f"broker {leader} leads, in epoch 1, as broker {follower} (follower) knows it" in shown


def test_a_broker_that_was_killed_is_shown_as_such(brokers: Brokers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exacta.server.cluster.operations.LIVES_MS", 0)
    leader, [follower] = start(brokers, 2)
    brokers.kill(follower)
    brokers.until(lambda: all(each.age_ms > 0 for each in brokers.servers[leader].cluster.brokers), "it is not missed")
    [killed] = [each for each in status(brokers, leader)["brokers"] if each["node_id"] == follower]
    assert not killed["is_live"]


def test_no_answer_is_told_in_a_line_that_says_where_to_look(brokers: Brokers) -> None:
    start(brokers, 1)
    brokers.kill(1)
    result = run(brokers, 1, "status", "--timeout", "0.3")
    assert result.exit_code == 1
    [line] = result.stderr.splitlines()[-1:]
    assert "no broker answers" in line
    assert "PostgreSQL" in line


def test_the_lead_moves_to_any_other_broker_and_is_not_moved_twice(brokers: Brokers) -> None:
    leader, [follower] = start(brokers, 2)
    result = run(brokers, follower, "move")
    assert (result.exit_code, result.stdout) == (0, f"broker {follower} leads, in epoch 2\n"), result.output
    assert brokers.leader() == follower
    late = brokers.on_loop(lambda: brokers.servers[follower].cluster.move(1, None))  # a request that was sent again
    assert late is None
    assert brokers.followers() == [leader]
    assert status(brokers, leader)["epoch"] == 2


def test_the_named_broker_leads_and_the_others_leave_it_the_lead(brokers: Brokers) -> None:
    leader, followers = start(brokers, 3)
    for named in [*followers, leader, *followers]:
        result = run(brokers, named, "move", "--to", str(named))
        assert result.exit_code == 0, result.output
        assert brokers.leader() == named
        brokers.followers()
    assert run(brokers, leader, "move", "--to", str(named)).exit_code == 0  # it leads already
    assert brokers.leader() == named


def test_a_lead_that_nobody_could_take_is_not_moved(brokers: Brokers) -> None:
    leader, [follower] = start(brokers, 2)
    result = run(brokers, leader, "move", "--to", "7")
    assert (result.exit_code, result.stderr) == (
        1,
        "exacta: there is no other broker 7 to lead; these live: 1, 2\n",
    )
    brokers.stop(follower)
    brokers.until(lambda: len(brokers.servers[leader].cluster.nodes) == 1, "it is not missed")
    result = run(brokers, leader, "move")
    assert (result.exit_code, result.stderr) == (1, "exacta: there is no other broker to lead; these live: 1\n")
    assert brokers.leader() == leader
