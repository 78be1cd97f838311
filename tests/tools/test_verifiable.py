"""The tools of Kafka's own system tests: verifiable producer and consumer, and the transactional message copier."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.spark.clusters import read_committed
from tests.tools.bench import Bench
from tests.tools.processes import Running

COUNT = 2_000


def produced(bench: Bench, topic: str, count: int) -> list[int]:
    """Produce 0, 1, … by the verifiable producer; return the offsets that it was told, of all partitions together."""
    arguments = ("--bootstrap-server", bench.bootstrap, "--topic", topic, "--max-messages", str(count))
    with Running("kafka-verifiable-producer", *arguments) as producer:
        events = producer.rest()
    sent = [event for event in events if event["name"] == "producer_send_success"]
    assert sorted(int(event["value"]) for event in sent) == list(range(count))
    assert events[-1]["name"] == "tool_data"
    assert (events[-1]["sent"], events[-1]["acked"]) == (count, count)
    return [int(event["offset"]) for event in sent]


@pytest.mark.parametrize(
    ("protocol", "while_two", "alone_again"),
    [
        # Everything is given up and assigned again.
        ("CLASSIC", ("partitions_assigned", 1), ("partitions_assigned", 2)),
        # Only what changes is told (KIP-848).
        ("CONSUMER", ("partitions_revoked", 1), ("partitions_assigned", 1)),
    ],
)
def test_what_is_produced_is_consumed_by_a_group_that_changes(
    bench: Bench, protocol: str, while_two: tuple[str, int], alone_again: tuple[str, int]
) -> None:
    topic, group = bench.topic(2), bench.name("group")
    produced(bench, topic, COUNT)
    arguments = (
        "--bootstrap-server",
        bench.bootstrap,
        "--topic",
        topic,
        "--group-id",
        group,
        "--verbose",
        "--group-protocol",
        protocol,
    )
    with Running("kafka-verifiable-consumer", *arguments) as first:
        first.wait_for(change("partitions_assigned", 2))
        first.wait_for(lambda event: event["name"] == "offsets_committed" and event["success"])
        with Running("kafka-verifiable-consumer", *arguments) as second:
            second.wait_for(change("partitions_assigned", 1))
            first.wait_for(change(*while_two))
            # Its partner leaves in order, and it gets everything.
            second.terminate()
            second.rest(143)
            first.wait_for(change(*alone_again))
        produced(bench, topic, COUNT)

        def committed() -> int:
            rows = bench.good("kafka-consumer-groups", "--describe", "--group", group).rows[1:]
            return sum(int(row[3]) for row in rows if row[3] != "-")

        bench.until(committed, lambda found: found == 2 * COUNT)
        first.terminate()
        first.rest(143)
    seen = [event for tool in (first, second) for event in tool.events if event["name"] == "record_data"]
    # Nobody died, so that nothing was read twice.
    assert sorted(int(event["value"]) for event in seen) == sorted([*range(COUNT)] * 2)


def change(name: str, count: int) -> Callable[[dict[str, Any]], bool]:
    """Return a test for the event that this many partitions were assigned or revoked."""
    return lambda event: event["name"] == name and len(event["partitions"]) == count


def test_messages_are_copied_exactly_once_however_often_the_copier_is_killed(bench: Bench) -> None:
    source, target, group = bench.topic(), bench.topic(), bench.name("group")
    produced(bench, source, COUNT)
    arguments = (
        *("--broker-list", bench.bootstrap, "--input-topic", source, "--input-partition", "0"),
        *("--output-topic", target, "--consumer-group", group, "--transactional-id", bench.name("id")),
        *("--transaction-size", "5", "--use-group-metadata", "--enable-random-aborts"),
        *("--transaction-timeout", "10000"),
    )
    for _ in range(3):
        with Running("transactional-message-copier", *arguments) as copier:
            copier.wait_for(lambda event: event.get("consumed", 0) > 0)
            copier.kill()
    with Running("transactional-message-copier", *arguments) as copier:
        copier.rest()
    copied = read_committed(bench.bootstrap, target)
    assert [int(value or b"") for _, _, value in copied] == [*range(COUNT)]
