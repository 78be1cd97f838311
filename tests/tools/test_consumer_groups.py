"""kafka-consumer-groups and kafka-groups: list, describe, every way to reset offsets, delete."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

from tests.tools.bench import FOR_EVER, Bench
from tests.tools.toolbox import Result

FIRST_MS = 1_700_000_000_000
TOOL = "kafka-consumer-groups"


def offsets(bench: Bench, group: str) -> list[str]:
    """Return partition, committed offset, end offset and lag of what a group has committed."""
    rows = bench.good(TOOL, "--describe", "--group", group).rows
    assert rows[0] == [
        "GROUP",
        "TOPIC",
        "PARTITION",
        "CURRENT-OFFSET",
        "LOG-END-OFFSET",
        "LAG",
        "CONSUMER-ID",
        "HOST",
        "CLIENT-ID",
    ]
    return [" ".join(row[2:6]) for row in rows[1:]]


def test_a_group_with_a_member(bench: Bench) -> None:
    topic, group = bench.topic(2), bench.name("group")
    bench.fill(topic, 5)
    bench.commit(group, topic, 3)
    member = bench.member(group, topic, 2, client_id="me")
    assert group in bench.good(TOOL, "--list").lines
    assert [group, "Stable"] in bench.good(TOOL, "--list", "--state").rows
    assert [group, "Stable"] in bench.good(TOOL, "--list", "--state", "stable").rows
    assert [group, "Stable"] not in bench.good(TOOL, "--list", "--state", "empty").rows
    assert [group, "Classic"] in bench.good(TOOL, "--list", "--type").rows
    assert [group, "Classic"] in bench.good(TOOL, "--list", "--type", "classic").rows
    assert [group, "Classic", "consumer"] in bench.good("kafka-groups", "--list").rows

    rows = bench.good(TOOL, "--describe", "--group", group).rows[1:]
    member_id = member.memberid()
    assert rows == [
        [group, topic, "0", "3", "5", "2", member_id, "/127.0.0.1", "me"],
        [group, topic, "1", "-", "0", "-", member_id, "/127.0.0.1", "me"],
    ]
    ((*rest, assignment, _, _),) = bench.good(TOOL, "--describe", "--group", group, "--members", "--verbose").rows[1:]
    assert (rest, assignment) == ([group, member_id, "/127.0.0.1", "me", "2", "-"], f"{topic}:0,1")
    state = bench.good(TOOL, "--describe", "--group", group, "--state").rows[1]
    assert state == [group, bench.bootstrap, f"({bench.node})", "range", "Stable", "1"]

    # What it reads is not to be touched.
    refused = bench.run(TOOL, "--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute")
    assert f"only be reset if the group '{group}' is inactive, but the current state is Stable" in refused.out
    assert "GroupNotEmptyException" in bench.run(TOOL, "--delete", "--group", group).out
    refused = bench.run(TOOL, "--delete-offsets", "--group", group, "--topic", topic)
    assert refused.out.count("GroupSubscribedToTopicException") == 2
    assert offsets(bench, group) == ["0 3 5 2", "1 - 0 -"]


def test_a_group_of_the_consumer_protocol(bench: Bench) -> None:
    topic, group = bench.topic(2), bench.name("group")
    bench.fill(topic, 5)
    member = bench.member(group, topic, 2, client_id="me", group_protocol="consumer", group_remote_assignor="uniform")
    member.commit(offsets=[TopicPartition(topic, 0, 3)], asynchronous=False)
    assert [group, "Consumer"] in bench.good(TOOL, "--list", "--type").rows
    assert [group, "Consumer"] not in bench.good(TOOL, "--list", "--type", "classic").rows
    assert [group, "Consumer", "consumer"] in bench.good("kafka-groups", "--list").rows
    member_id = member.memberid()
    assert bench.good(TOOL, "--describe", "--group", group).rows[1:] == [
        [group, topic, "0", "3", "5", "2", member_id, "/127.0.0.1", "me"],
        [group, topic, "1", "-", "0", "-", member_id, "/127.0.0.1", "me"],
    ]
    (row,) = bench.good(TOOL, "--describe", "--group", group, "--members", "--verbose").rows[1:]
    assert row[:5] == [group, member_id, "/127.0.0.1", "me", "2"]
    # The epoch and the assignment that it has are those that it is to have.
    assert row[5:7] == row[7:9]
    assert row[6] == f"{topic}:0,1"
    state = bench.good(TOOL, "--describe", "--group", group, "--state", "--verbose").rows[1]
    assert state == [group, bench.bootstrap, f"({bench.node})", "uniform", "Stable", row[5], row[7], "1"]
    assert "GroupNotEmptyException" in bench.run(TOOL, "--delete", "--group", group).out
    refused = bench.run(TOOL, "--delete-offsets", "--group", group, "--topic", topic)
    assert refused.out.count("GroupSubscribedToTopicException") == 2


def test_a_group_without_members(bench: Bench) -> None:
    topic, group = bench.topic(2), bench.name("group")
    bench.fill(topic, 5)
    bench.commit(group, topic, 3)
    for question in ((), ("--members",), ("--state",), ("--offsets", "--verbose")):
        described = bench.good(TOOL, "--describe", "--group", group, *question)
        assert described.err.strip() == f"Consumer group '{group}' has no active members."
    assert offsets(bench, group) == ["0 3 5 2"]
    assert bench.good(TOOL, "--describe", "--group", group, "--state").rows[1] == [
        *(group, bench.bootstrap, f"({bench.node})", "-", "Empty", "0")
    ]
    assert group in bench.good(TOOL, "--describe", "--all-groups", "--state").out
    missing = bench.name("missing")
    assert f"Group {missing} not found." in bench.run(TOOL, "--describe", "--group", missing).out


class Resets:
    """A group with offsets in two partitions of one topic: 3 of 10 and 2 of 4; the third has nothing."""

    def __init__(self, bench: Bench) -> None:
        self.topic, self.group = bench.topic(3, **FOR_EVER), bench.name("group")
        self._bench = bench
        bench.fill(self.topic, 10, first_time=FIRST_MS)
        bench.fill(self.topic, 4, partition=1, first_time=FIRST_MS)
        bench.commit(self.group, self.topic, 3, 2)

    def run(self, *arguments: str, scope: str = "") -> Result:
        """Reset, of the whole topic or what `scope` names of it."""
        chosen = ("--reset-offsets", "--group", self.group, "--topic", self.topic + scope)
        return self._bench.good(TOOL, *chosen, *arguments)

    def planned(self, *arguments: str, scope: str = "") -> list[str]:
        """Return partition and new offset, as announced."""
        rows = self.run(*arguments, scope=scope).rows
        return sorted(" ".join(row[2:]) for row in rows if row[:2] == [self.group, self.topic])

    def committed(self) -> list[str]:
        """Return partition and offset."""
        return [" ".join(row.split()[:2]) for row in offsets(self._bench, self.group)]


@pytest.fixture
def resets(bench: Bench) -> Resets:
    return Resets(bench)


def test_a_reset_is_first_shown(resets: Resets) -> None:
    assert resets.planned("--to-earliest", "--dry-run") == ["0 0", "1 0", "2 0"]
    assert resets.committed() == ["0 3", "1 2"]


@pytest.mark.parametrize(
    ("way", "scope", "planned", "committed"),
    [
        (("--to-earliest",), "", ["0 0", "1 0", "2 0"], ["0 0", "1 0", "2 0"]),
        (("--to-latest",), "", ["0 10", "1 4", "2 0"], ["0 10", "1 4", "2 0"]),
        (("--to-current",), "", ["0 3", "1 2", "2 0"], ["0 3", "1 2", "2 0"]),
        (("--to-offset", "4"), ":1", ["1 4"], ["0 3", "1 4"]),
        (("--to-offset", "999"), ":0,1", ["0 10", "1 4"], ["0 10", "1 4"]),
        (("--shift-by", "-2"), ":0,1", ["0 1", "1 0"], ["0 1", "1 0"]),
        (("--shift-by", "3"), ":0,1", ["0 6", "1 4"], ["0 6", "1 4"]),
        (("--by-duration", "P1D"), ":0,1", ["0 10", "1 4"], ["0 10", "1 4"]),
        (("--by-duration", "P10000D"), ":0,1", ["0 0", "1 0"], ["0 0", "1 0"]),
    ],
)
def test_a_reset(resets: Resets, way: tuple[str, ...], scope: str, planned: list[str], committed: list[str]) -> None:
    assert resets.planned(*way, "--execute", scope=scope) == planned
    assert resets.committed() == committed


def test_a_reset_to_a_time(resets: Resets) -> None:
    def moment(later_ms: int) -> str:
        time = datetime.fromtimestamp((FIRST_MS + later_ms) / 1000, UTC)
        return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    assert resets.planned("--to-datetime", moment(2_500), "--execute") == ["0 3", "1 3", "2 0"]
    # No record is so late in the second partition, nor any at all in the third.
    assert resets.planned("--to-datetime", moment(5_000), "--execute") == ["0 5", "1 4", "2 0"]
    assert resets.committed() == ["0 5", "1 4", "2 0"]


def test_a_reset_by_a_file(bench: Bench, resets: Resets, folder: Path) -> None:
    # Topic, partition, offset: what an export of one group looks like.
    plan = folder / "plan.csv"
    plan.write_text(resets.run("--to-offset", "2", "--export", "--dry-run", scope=":0,1").out)
    assert sorted(plan.read_text().split()) == [f"{resets.topic},0,2", f"{resets.topic},1,2"]
    plan.write_text(f"{resets.topic},0,7\n{resets.topic},2,0\n")
    chosen = ("--reset-offsets", "--group", resets.group, "--from-file", str(plan), "--execute")
    bench.good(TOOL, *chosen)
    assert resets.committed() == ["0 7", "1 2", "2 0"]


def test_a_reset_of_everything(bench: Bench, resets: Resets) -> None:
    bench.good(TOOL, "--reset-offsets", "--group", resets.group, "--all-topics", "--to-latest", "--execute")
    assert resets.committed() == ["0 10", "1 4"]


def test_a_reset_makes_a_group(bench: Bench, resets: Resets) -> None:
    resets.group = bench.name("group")
    assert resets.planned("--to-latest", "--execute") == ["0 10", "1 4", "2 0"]
    assert resets.committed() == ["0 10", "1 4", "2 0"]


def test_offsets_and_groups_are_deleted(bench: Bench, resets: Resets) -> None:
    delete = (TOOL, "--delete-offsets", "--group", resets.group, "--topic")
    done = bench.good(*delete, f"{resets.topic}:0")
    assert done.rows[-1] == [resets.topic, "0", "Successful"]
    assert resets.committed() == ["1 2"]
    missing = bench.name("missing")
    assert "UnknownTopicOrPartitionException" in bench.good(*delete, missing).out
    removed = (TOOL, "--delete", "--group", resets.group)
    assert f"('{resets.group}') was successful" in bench.good(*removed).out
    assert "GroupIdNotFoundException" in bench.run(*removed).out
    assert resets.group not in bench.good(TOOL, "--list").lines
