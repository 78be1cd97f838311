"""DescribeLogDirs tells the one folder in which everything lies, and each partition's bytes in it (KIP-113).

What open transactions have staged for a partition counts as well, since it is in the folder.
"""

from collections.abc import Iterable

from exacta.core.queries.log_dirs import Places, all_places, staged_bytes
from exacta.front.broker import Broker
from exacta.front.disk_space import DiskSpace, ask_disk_space
from exacta.kafka.at_follower import CATCHES_UP
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.listing import describe_all
from exacta.kafka.needs import Whole
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.messages.k35_describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

IN_MEMORY = "memory"
"""The name by which a broker without a folder calls its own."""
SPACE_SINCE = 4
"""The first version that tells the size and the free space of the folder (KIP-827)."""


def handle(broker: Broker, request: DescribeLogDirsRequest, context: RequestContext, reply: Reply) -> None:
    """Describe the partitions that are named and there, or all."""

    def answer(topics: list[DescribeLogDirsTopic]) -> None:
        def measured(space: DiskSpace) -> None:
            total_bytes, usable_bytes = space
            folder = IN_MEMORY if broker.log_dir is None else str(broker.log_dir)
            result = DescribeLogDirsResult(
                log_dir=folder, topics=topics, total_bytes=total_bytes, usable_bytes=usable_bytes
            )
            reply(DescribeLogDirsResponse(results=[result]))

        ask_disk_space(broker.log_dir if context.version >= SPACE_SINCE else None, context.guard(measured))

    def told(places: Places, staged: dict[int, int]) -> DescribeLogDirsTopic | None:
        topic, _ = places
        size_bytes = broker.engine.lookups.size_bytes
        partitions = [
            DescribeLogDirsPartition(partition_index=index, partition_size=size_bytes(topic, index) + staged_bytes)
            for index, staged_bytes in staged.items()
        ]
        return DescribeLogDirsTopic(name=topic, partitions=partitions) if partitions else None

    def describe() -> None:
        wanted = broker.engine.view(all_places) if request.topics is None else _named(request.topics)
        describe_all(broker, context, wanted, staged_bytes, told, answer)

    broker.when_durable(context, describe)  # the sizes are those of the durable log, which holds the state of before


def _named(topics: Iterable[DescribableLogDirTopic]) -> list[Places]:
    asked: dict[str, dict[int, None]] = {}  # each partition once
    for each in topics:
        asked.setdefault(each.topic, {}).update(dict.fromkeys(each.partitions))
    return list(asked.items())


HANDLER = Handler(
    ApiKey.DESCRIBE_LOG_DIRS,
    versions=(1, 5),
    needs=(Whole(Operation.DESCRIBE, ResourceKind.CLUSTER),),
    at_follower=CATCHES_UP,
    handle=handle,
    always_plain=True,  # before version 3 an empty answer says it, as in Apache Kafka
)
