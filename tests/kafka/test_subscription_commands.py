"""`exacta subscriptions`: an operator sees subscriptions, and why they wait, and moves them."""

from collections.abc import Iterator

import pytest
from typer.testing import CliRunner, Result

from exacta.cli.app import app
from exacta.core.commands import RefuseAppends
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE
from exacta.core.subscriptions.description import WaitReason
from exacta.core.values.subscriptions import SubscriptionType
from tests.kafka.subscribing import Subscriber
from tests.kafka.test_ask_lag import produce
from tests.kafka.test_handles import Handle
from tests.kafka.test_topic_ids import create
from tests.kafka.wire import Front, batch, front


@pytest.fixture
def broker() -> Iterator[Front]:
    """A broker with six messages and two subscriptions."""
    with front() as running:
        wire = running.connect()
        create(wire)
        create(wire, "u", 2)
        produce(wire, batch(*[b"v"] * 6))
        Subscriber(running, "one", properties={"team": "blue"})
        Subscriber(running, "two", topic="u", partition=1, kind=SubscriptionType.FAILOVER)
        yield running


def run(broker: Front, *arguments: str, answer: str = "") -> Result:
    where = ["--bootstrap-server", "{}:{}".format(*broker.address)]
    return CliRunner().invoke(app, ["subscriptions", *arguments, *where], input=answer)


def rows(result: Result) -> list[list[str]]:
    assert result.exit_code == 0, result.output
    return [line.split() for line in result.stdout.splitlines()]


def test_they_are_listed(broker: Front) -> None:
    header, *found = rows(run(broker, "list"))
    assert header == ["partition", "subscription", "type", "consumers", "position", "backlog"]
    assert found == [["t-0", "one", "Shared", "0", "0", "6"], ["u-1", "two", "Failover", "0", "0", "0"]]
    assert [row[1] for row in rows(run(broker, "list", "--topic", "u"))[1:]] == ["two"]
    assert [row[1] for row in rows(run(broker, "list", "--topic", "persistent://public/default/t"))[1:]] == ["one"]


def test_a_list_is_bounded_and_says_so(broker: Front) -> None:
    shown = run(broker, "list", "--limit", "1")
    assert [row[1] for row in rows(shown)[1:]] == ["one"]
    assert shown.stderr == "exacta: there are more than 1 subscriptions: --limit shows more, --topic those of a topic\n"
    assert run(broker, "list", "--limit", "2").stderr == ""


def test_the_backlog_is_shown_with_what_is_apart(broker: Front) -> None:
    handle = Handle(broker)
    assert Subscriber(broker, "one").acknowledge((2, 3), transaction=handle.transaction_id) == DONE
    handle.write(b"open")
    produce(broker.connect(), batch(b"behind"))
    header, found, total = rows(run(broker, "lag", "t", "one"))
    assert header[:6] == ["partition", "position", "backlog", "pending", "held", "back"]
    assert found[:6] == ["t-0", "0", "4", "2", "2", "1"]
    assert found[6].startswith(handle.name)
    assert total == ["all", "4", "2", "2", "1"]


def test_one_is_described_with_the_reason_why_it_waits(broker: Front) -> None:
    handle = Handle(broker)
    one = Subscriber(broker, "one")
    one.acknowledge((3, 3), (5, 5))
    one.acknowledge((1, 1), transaction=handle.transaction_id)
    one.acknowledge(before=1, transaction=handle.transaction_id)
    handle.write(b"open")
    one.connect(1, name="worker-1")
    shown = run(broker, "describe", "t", "one")
    assert shown.exit_code == 0, shown.output
    first, *lines = shown.stdout.splitlines()
    assert first.startswith("t-0, subscription one: Shared, created ")
    assert [line for line in lines if " is open for " not in line] == [
        "  position 0; the partition is stable up to 6 and ends at 7",
        "  backlog 2, pending 2, held back 1 (uncommitted 1)",
        "  bounds: pulsar.backlog.quota.bytes=10737418240, pulsar.backlog.quota.ms=-1, "
        "pulsar.backlog.quota.policy=producer_request_hold, pulsar.message.ttl.ms=0",
        "  acknowledged beyond the position: 3, 5",
        f"  pending in {handle.name}: all before 1, 1",
        "  consumer 'worker-1': 0 permits, holds 0, priority 0",
        "  property team = blue",
        "  waits: no consumer that could be served has asked for messages",
        f"  waits: {WaitReason.PENDING}",
        f"  waits: {WaitReason.HELD_BACK}",
    ]
    assert lines[-1].startswith(f"  waits: {handle.name} is open for ")
    assert "  waits: there is no message that it has not acknowledged" in run(broker, "describe", "u", "two").stdout


def test_a_partition_that_keeps_too_much_is_told_with_the_topics_own_bounds(broker: Front) -> None:
    wire = broker.connect()
    create(wire, "v", configs={"pulsar.backlog.quota.bytes": "100", "pulsar.message.ttl.ms": "5000"})
    subscriber = Subscriber(broker, "three", topic="v")
    refuse = RefuseAppends(topic="v", partition=0, reason=Rejection.BACKLOG_HOLDS_PRODUCERS)
    over = "  over the quota: nothing is appended until less is kept for the topic's subscriptions"
    assert over not in run(broker, "describe", "v", "three").stdout.splitlines()
    subscriber.ask(refuse)
    lines = run(broker, "describe", "v", "three").stdout.splitlines()
    assert over in lines
    [bounds] = [line for line in lines if line.startswith("  bounds: ")]
    assert "pulsar.backlog.quota.bytes=100, " in bounds
    assert bounds.endswith("pulsar.message.ttl.ms=5000")


def test_one_is_moved_when_the_operator_agrees(broker: Front) -> None:
    assert run(broker, "reset", "t", "one", "--to", "4", "--dry-run").stdout == "t-0: from 0 to 4\n"
    assert run(broker, "reset", "t", "one", "--to", "4", answer="n\n").exit_code == 1
    assert rows(run(broker, "list", "--topic", "t"))[1][4:] == ["0", "6"]
    moved = run(broker, "reset", "t", "one", "--to", "4", "--yes")
    assert moved.stdout == "t-0: from 0 to 4\nsubscription one was moved\n"
    assert rows(run(broker, "list", "--topic", "t"))[1][4:] == ["4", "2"]
    assert run(broker, "reset", "t", "one", "--to", "1970-01-01T00:00:01+00:00", "--yes").exit_code == 0
    assert rows(run(broker, "list", "--topic", "t"))[1][4:] == ["0", "6"]
    assert run(broker, "reset", "t", "one", "--to", "latest", "--yes").exit_code == 0
    assert rows(run(broker, "list", "--topic", "t"))[1][4:] == ["6", "0"]


@pytest.mark.parametrize("command", [["describe"], ["lag"], ["reset", "--to", "earliest", "--yes"]])
@pytest.mark.parametrize(
    ("place", "message"),
    [
        (["t", "ones"], "topic t has no subscription ones; did you mean one?"),
        (["t", "one", "--partition", "3"], "t-3 has no subscription one"),
        (["u", "two", "--partition", "0"], "u-0 has no subscription two"),
        (["topic", "one"], "there is no topic topic"),
    ],
)
def test_what_is_not_there_is_one_line(broker: Front, command: list[str], place: list[str], message: str) -> None:
    refused = run(broker, command[0], *place, *command[1:])
    assert (refused.exit_code, refused.stderr) == (1, f"exacta: {message}\n")


@pytest.mark.parametrize(
    ("to", "code", "message"),
    [
        ("7", 1, "t-0 ends at offset 6: there is nothing beyond"),
        ("-7", 2, "--to: '-7' is neither earliest, latest, an offset nor a time like 2026-01-31T12:00:00Z"),
        ("noon", 2, "--to: 'noon' is neither earliest, latest, an offset nor a time like 2026-01-31T12:00:00Z"),
    ],
)
def test_a_place_that_is_none_is_one_line(broker: Front, to: str, code: int, message: str) -> None:
    refused = run(broker, "reset", "t", "one", "--to", to, "--yes")
    assert (refused.exit_code, refused.stderr) == (code, f"exacta: {message}\n")


def test_another_cluster_than_an_exacta_is_told_apart(broker: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exacta.client.routing.Client.offers", lambda *given: False)
    refused = run(broker, "list")
    assert (refused.exit_code, refused.stderr.count("\n")) == (1, 1)
    assert "is not an Exacta" in refused.stderr


def test_an_offset_is_one_of_a_partition(broker: Front) -> None:
    Subscriber(broker, "two", topic="u", partition=0, kind=SubscriptionType.FAILOVER)
    refused = run(broker, "reset", "u", "two", "--to", "0", "--yes")
    assert (refused.exit_code, "name the one of the offset with --partition" in refused.stderr) == (2, True)
    assert run(broker, "reset", "u", "two", "--to", "0", "--partition", "0", "--yes").exit_code == 0
    everywhere = run(broker, "reset", "u", "two", "--to", "earliest", "--yes").stdout
    assert everywhere.splitlines()[:2] == ["u-0: from 0 to 0", "u-1: from 0 to 0"]
