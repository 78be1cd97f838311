"""ListConfigResources names what has configurations (KIP-1142; version 0 asks for clients' metrics only, KIP-714)."""

from exacta.core.queries.topic_lists import topic_names
from exacta.core.queries.topics import TopicShape, topic_shape
from exacta.front.broker import Broker
from exacta.kafka.at_follower import CATCHES_UP
from exacta.kafka.config_source import ResourceType
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.listing import describe_all
from exacta.kafka.needs import Whole
from exacta.kafka.nodes import node_ids
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k74_list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

FIRST_VERSION_WITH_TYPES = 1


def handle(broker: Broker, request: ListConfigResourcesRequest, context: RequestContext, reply: Reply) -> None:
    """List topics, brokers and their loggers; groups and clients' metrics have no configurations here."""
    if context.version < FIRST_VERSION_WITH_TYPES:
        reply(ListConfigResourcesResponse())
        return
    types = set(request.resource_types) or set(ResourceType)
    if not types <= set(ResourceType):
        reply(ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))
        return

    def told(name: str, _: TopicShape) -> ConfigResource:
        return ConfigResource(resource_type=ResourceType.TOPIC, resource_name=name)

    def done(topics: list[ConfigResource]) -> None:
        own = [
            ConfigResource(resource_type=each, resource_name=str(node_id))
            for each in (ResourceType.BROKER, ResourceType.BROKER_LOGGER)
            for node_id in node_ids(broker)
            if each in types
        ]
        reply(ListConfigResourcesResponse(config_resources=own + topics))

    names = broker.engine.advice.look(topic_names) if ResourceType.TOPIC in types else []
    describe_all(broker, context, names, topic_shape, told, done)


HANDLER = Handler(
    ApiKey.LIST_CONFIG_RESOURCES,
    versions=(0, 1),
    needs=(Whole(Operation.DESCRIBE_CONFIGS, ResourceKind.CLUSTER),),
    at_follower=CATCHES_UP,
    handle=handle,
)
