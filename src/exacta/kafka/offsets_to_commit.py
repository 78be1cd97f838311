"""What OffsetCommit and TxnOffsetCommit have in common: many partitions in one command, an error code for each.

The core takes or refuses a command whole. Most refusals are about the committer and so hold for every partition. Where
one partition is at fault, Kafka refuses that one alone: then, and only then, each partition is submitted by itself.
"""

from collections.abc import Callable, Sequence

from exacta.core.commands import Command, OffsetToCommit
from exacta.core.rejections import Rejection
from exacta.engine.engine import Answer
from exacta.kafka.broker import BrokerContext
from exacta.kafka.context import RequestContext

_ONE_PARTITION_AT_FAULT = frozenset({Rejection.UNKNOWN_TOPIC_OR_PARTITION, Rejection.OFFSET_METADATA_TOO_LARGE})


def offset_to_commit(
    topic: str, partition: int, offset: int, leader_epoch: int, metadata: str | None
) -> OffsetToCommit:
    """Make the core's form of one partition's offset."""
    return OffsetToCommit(
        topic=topic, partition=partition, offset=offset, leader_epoch=leader_epoch, metadata=metadata or ""
    )


def commit(
    broker: BrokerContext,
    context: RequestContext,
    offsets: Sequence[OffsetToCommit],
    make_command: Callable[[tuple[OffsetToCommit, ...]], Command],
    done: Callable[[list[Answer]], None],
) -> None:
    """Submit the offsets; `done` gets one answer for each, in order."""

    def answered(answer: Answer) -> None:
        if answer in _ONE_PARTITION_AT_FAULT and len(offsets) > 1:
            broker.submit(context, [make_command((offset,)) for offset in offsets], done)
        else:
            done([answer] * len(offsets))

    broker.ask(context, make_command(tuple(offsets)), answered)
