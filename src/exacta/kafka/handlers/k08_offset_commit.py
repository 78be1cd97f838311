"""OffsetCommit stores a group's positions, outside any transaction."""

from exacta.core.commands import CommitOffsets
from exacta.front.broker import Broker
from exacta.kafka.at_follower import NOT_COORDINATOR
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Each, Whole, group_id
from exacta.kafka.offsets_to_commit import CommitApi, commit
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

MEMBER_EPOCHS_SINCE = 9
TOPIC_IDS_SINCE = 10

_API = CommitApi(OffsetCommitResponse, OffsetCommitResponseTopic, OffsetCommitResponsePartition, TOPIC_IDS_SINCE)


def handle(broker: Broker, request: OffsetCommitRequest, context: RequestContext, reply: Reply) -> None:
    """Commit the offsets; retention times (versions 2 to 4) are ignored, as newer Kafka does."""
    commit(
        _API,
        broker,
        context,
        request,
        lambda offsets: CommitOffsets(
            group_id=request.group_id,
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            knows_member_epochs=context.version >= MEMBER_EPOCHS_SINCE,
            generation=request.generation_id_or_member_epoch,
            offsets=offsets,
        ),
        reply,
    )


HANDLER = Handler(
    ApiKey.OFFSET_COMMIT,
    versions=(2, 10),
    needs=(
        Whole(Operation.READ, ResourceKind.GROUP, group_id),
        Each(Operation.READ, ResourceKind.TOPIC, "topics", "topics"),
    ),
    at_follower=NOT_COORDINATOR,
    handle=handle,
)
