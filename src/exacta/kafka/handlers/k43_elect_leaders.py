"""ElectLeaders: with one broker, every partition has its leader already (KIP-460)."""

from itertools import repeat

from exacta.core.queries.topics import sorted_topic_names
from exacta.front.broker import Broker
from exacta.kafka.at_follower import NOT_CONTROLLER
from exacta.kafka.coded_answers import coded
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Whole
from exacta.kafka.parts import Parts
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k43_elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)

ELECTION_TYPES = (0, 1)
"""The types of elections: preferred and unclean."""

PARTITIONS = Parts(
    "topic_partitions",
    "replica_election_results",
    name="topic",
    inner="partitions",
    inner_answers="partition_result",
)


def handle(broker: Broker, request: ElectLeadersRequest, context: RequestContext, reply: Reply) -> None:
    """Answer for each partition; for all of them, where none is named, with nothing, as Apache Kafka."""
    known = request.election_type in ELECTION_TYPES
    wanted = request.topic_partitions
    if wanted is None:
        wanted = [TopicPartitions(topic=topic) for topic in broker.engine.view(sorted_topic_names)]
    results = [
        ReplicaElectionResult(
            topic=each.topic,
            partition_result=[_result(broker, each.topic, index, known) for index in each.partitions],
        )
        for each in wanted
    ]
    code = ErrorCode.NONE if known else ErrorCode.INVALID_REQUEST
    answer = ElectLeadersResponse(error_code=code, replica_election_results=results)
    broker.when_durable(context, lambda: reply(answer))


def _result(broker: Broker, topic: str, index: int, known: bool) -> PartitionResult:
    if not known:
        code, message = ErrorCode.INVALID_REQUEST, "there is no such type of election"
    elif broker.engine.advice.partition_id(topic, index) is None:
        code, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"the topic has no partition {index}"
    else:
        code, message = ErrorCode.ELECTION_NOT_NEEDED, "the one broker leads it already"
    return PartitionResult(partition_id=index, error_code=code, error_message=message)


def refused(request: ElectLeadersRequest, code: ErrorCode, version: int) -> ElectLeadersResponse:
    """Refuse a request as a whole and, as Apache Kafka does, also every partition: version 0 can say it only there."""
    answer = coded(ElectLeadersResponse, PARTITIONS, request, repeat(code), version)
    answer.error_code = code
    return answer


HANDLER = Handler(
    ApiKey.ELECT_LEADERS,
    versions=(0, 2),
    needs=(Whole(Operation.ALTER, ResourceKind.CLUSTER),),
    at_follower=NOT_CONTROLLER,
    handle=handle,
    parts=(PARTITIONS,),
    refused=refused,
)
