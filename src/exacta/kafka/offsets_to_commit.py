"""The common part of OffsetCommit and TxnOffsetCommit: many partitions in one command, an error code for each.

Their newest versions name topics by id. A partition of a topic that is gone is answered here; the core is asked about
the others, if there are any.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import repeat
from typing import Any

from msgspec import Struct

from exacta.core.commands import Command, OffsetToCommit
from exacta.core.replies import DONE, OffsetsTaken
from exacta.front.broker import Broker
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Reply
from exacta.kafka.pieces import by_pieces
from exacta.ports.log import Answer
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.schema import Message

MOST_COMMITTED = 15_000
"""One request commits offsets of at most this many partitions: they are decided in one step. Apache Kafka refuses a
request whose offsets do not fit into one batch, which holds about as many by default."""

MOST_METADATA = 4 << 20
"""The characters of metadata in one request; such a batch of Apache Kafka has 1 MiB by default."""


class CommitApi(Struct, frozen=True):
    """One of the two: what its answer is made of."""

    response: Callable[..., Message]
    topic: Callable[..., Any]
    partition: Callable[..., Any]
    topic_ids_since: int


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
    asked = [(topic, partition) for topic in request.topics for partition in topic.partitions]
    offsets: list[OffsetToCommit | None] = []
    metadata_size = 0

    def read(piece: Iterable[tuple[Any, Any]]) -> None:
        nonlocal metadata_size
        for topic, partition in piece:
            name = broker.engine.advice.topic_name(topic.topic_id) if by_id else topic.name
            offsets.append(None if name is None else _offset(name, partition))
            metadata_size += len(partition.committed_metadata or "")

    def ask() -> None:
        known = tuple(each for each in offsets if each is not None)
        if metadata_size > MOST_METADATA:
            refuse()
        elif request.topics and not known:
            broker.when_durable(context, lambda: answered(DONE))  # a topic may be one whose deletion is not durable yet
        else:
            broker.ask(context, make_command(known), answered)

    def answered(answer: Answer) -> None:
        if isinstance(answer, OffsetsTaken):
            answers: Iterator[Answer] = (DONE if each is None else each for each in answer.rejections)
        else:  # about the committer, and so about every partition
            answers = repeat(answer)
        codes = (context.error_code(each) for each in answers)
        tell(ErrorCode.UNKNOWN_TOPIC_ID if each is None else next(codes) for each in offsets)

    def refuse() -> None:
        tell(repeat(ErrorCode.INVALID_COMMIT_OFFSET_SIZE))

    def tell(codes: Iterator[int]) -> None:
        answer = api.response(topics=[])
        by_pieces(context, request.topics, partial(_add, api, answer, codes), lambda: reply(answer))

    if len(asked) > MOST_COMMITTED:
        refuse()
    else:
        by_pieces(context, asked, read, ask)


def _add(api: CommitApi, answer: Any, codes: Iterator[int], topics: Iterable[Any]) -> None:
    for topic in topics:
        partitions = [
            api.partition(partition_index=each.partition_index, error_code=code)
            for each, code in zip(topic.partitions, codes, strict=False)
        ]
        answer.topics.append(api.topic(name=topic.name, topic_id=topic.topic_id, partitions=partitions))


def _offset(topic: str, partition: Any) -> OffsetToCommit:
    return OffsetToCommit(
        topic=topic,
        partition=partition.partition_index,
        offset=partition.committed_offset,
        leader_epoch=partition.committed_leader_epoch,
        metadata=partition.committed_metadata or "",
    )
