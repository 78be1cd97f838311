"""What OffsetCommit and TxnOffsetCommit have in common: many partitions in one command, an error code for each."""

from collections.abc import Callable, Sequence

from exacta.core.commands import Command, OffsetToCommit
from exacta.core.replies import DONE, OffsetsTaken
from exacta.engine.engine import Answer
from exacta.kafka.broker import BrokerContext
from exacta.kafka.context import RequestContext


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
        if isinstance(answer, OffsetsTaken):
            done([DONE if rejection is None else rejection for rejection in answer.rejections])
        else:  # about the committer, and so about every partition
            done([answer] * len(offsets))

    broker.ask(context, make_command(tuple(offsets)), answered)
