"""What OffsetCommit and TxnOffsetCommit have in common: many partitions in one command, an error code for each."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from exacta.core.commands import Command, OffsetToCommit
from exacta.core.replies import DONE, OffsetsTaken
from exacta.engine.engine import Answer
from exacta.kafka.broker import BrokerContext
from exacta.kafka.context import RequestContext
from exacta.kafka.errors import error_code
from exacta.kafka.handler import Reply
from exacta.kafka.keys import ApiKey
from exacta.protocol.schema import Message


class CommitApi(Struct, frozen=True):
    """One of the two: its key, and what its answer is made of."""

    key: ApiKey
    response: Callable[..., Message]
    topic: Callable[..., Any]
    partition: Callable[..., Any]


def commit(
    api: CommitApi,
    broker: BrokerContext,
    context: RequestContext,
    request: Any,
    make_command: Callable[[tuple[OffsetToCommit, ...]], Command],
    reply: Reply,
) -> None:
    """Submit the offsets of a request and answer it; `make_command` adds who commits them."""
    offsets = tuple(
        OffsetToCommit(
            topic=topic.name,
            partition=partition.partition_index,
            offset=partition.committed_offset,
            leader_epoch=partition.committed_leader_epoch,
            metadata=partition.committed_metadata or "",
        )
        for topic in request.topics
        for partition in topic.partitions
    )

    def answered(answer: Answer) -> None:
        answers: list[Answer]
        if isinstance(answer, OffsetsTaken):
            answers = [DONE if rejection is None else rejection for rejection in answer.rejections]
        else:  # about the committer, and so about every partition
            answers = [answer] * len(offsets)
        codes = (error_code(each, api.key, context.version) for each in answers)
        topics = [
            api.topic(
                name=topic.name,
                partitions=[
                    api.partition(partition_index=partition.partition_index, error_code=next(codes))
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        reply(api.response(topics=topics))

    broker.ask(context, make_command(offsets), answered)
