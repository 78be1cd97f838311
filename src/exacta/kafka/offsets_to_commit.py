"""The common part of OffsetCommit and TxnOffsetCommit: many partitions in one command, an error code for each.

Their newest versions name topics by id. A partition of a topic that is gone is answered here; the core is asked about
the others, if there are any.
"""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from exacta.core.commands import Command, OffsetToCommit
from exacta.core.replies import DONE, OffsetsTaken
from exacta.engine.engine import Answer
from exacta.front.broker import Broker
from exacta.kafka.context import RequestContext
from exacta.kafka.errors import error_code
from exacta.kafka.handler import Reply
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.schema import Message


class CommitApi(Struct, frozen=True):
    """One of the two: its key, and what its answer is made of."""

    key: ApiKey
    response: Callable[..., Message]
    topic: Callable[..., Any]
    partition: Callable[..., Any]
    topic_ids_since: int


def refusal(api: CommitApi, request: Any, code: ErrorCode) -> Message:
    """Return the answer that refuses every partition of a request."""
    return api.response(
        topics=[
            api.topic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    api.partition(partition_index=each.partition_index, error_code=code) for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def commit(
    api: CommitApi,
    broker: Broker,
    context: RequestContext,
    request: Any,
    make_command: Callable[[tuple[OffsetToCommit, ...]], Command],
    reply: Reply,
) -> None:
    """Submit the offsets of a request and answer it; `make_command` adds who commits them."""
    by_id = context.version >= api.topic_ids_since
    names = [broker.engine.present.topic_name(topic.topic_id) if by_id else topic.name for topic in request.topics]
    offsets = tuple(
        OffsetToCommit(
            topic=name,
            partition=partition.partition_index,
            offset=partition.committed_offset,
            leader_epoch=partition.committed_leader_epoch,
            metadata=partition.committed_metadata or "",
        )
        for name, topic in zip(names, request.topics, strict=True)
        if name is not None
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
                topic_id=topic.topic_id,
                partitions=[
                    api.partition(
                        partition_index=partition.partition_index,
                        error_code=ErrorCode.UNKNOWN_TOPIC_ID if name is None else next(codes),
                    )
                    for partition in topic.partitions
                ],
            )
            for name, topic in zip(names, request.topics, strict=True)
        ]
        reply(api.response(topics=topics))

    if names and not offsets:
        answered(DONE)
    else:
        broker.ask(context, make_command(offsets), answered)
