"""AlterConfigs: what a resource's configurations shall be, and nothing beside (older than IncrementalAlterConfigs)."""

from exacta.kafka.broker import BrokerContext
from exacta.kafka.config_alteration import Alteration, alter
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Reply
from exacta.kafka.keys import ApiKey
from exacta.kafka.topic_config_changes import Change, Operation
from exacta.protocol.kafka.messages.k33_alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

KEY = ApiKey.ALTER_CONFIGS
MIN_VERSION = 0
MAX_VERSION = 2


def handle(broker: BrokerContext, request: AlterConfigsRequest, context: RequestContext, reply: Reply) -> None:
    """Replace each resource's configurations for itself."""
    wanted = [
        Alteration(
            resource.resource_type,
            resource.resource_name,
            [Change(config.name, Operation.SET, config.value) for config in resource.configs],
            replaces=True,
        )
        for resource in request.resources
    ]

    def done(responses: list[AlterConfigsResourceResponse]) -> None:
        reply(AlterConfigsResponse(responses=responses))

    alter(broker, context, wanted, request.validate_only, AlterConfigsResourceResponse, done)
