"""IncrementalAlterConfigs: single configurations are set, deleted, appended to, subtracted from (KIP-339)."""

from exacta.front.broker import Broker
from exacta.kafka.config_alteration import Alteration, alter
from exacta.kafka.config_source import configured
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Each
from exacta.kafka.parts import Repeats, divided_by
from exacta.kafka.topic_config_changes import Change
from exacta.ports.authorizer import Operation
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.messages.k44_incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

NEEDS = (Each(Operation.ALTER_CONFIGS, configured, "resources", "responses", name="resource_name"),)


def handle(broker: Broker, request: IncrementalAlterConfigsRequest, context: RequestContext, reply: Reply) -> None:
    """Change each resource's configurations for itself."""
    wanted = [
        Alteration(
            resource.resource_type,
            resource.resource_name,
            [Change(config.name, config.config_operation, config.value) for config in resource.configs],
            replaces=False,
        )
        for resource in request.resources
    ]

    def done(responses: list[AlterConfigsResourceResponse]) -> None:
        reply(IncrementalAlterConfigsResponse(responses=responses))

    alter(broker, context, wanted, request.validate_only, AlterConfigsResourceResponse, done)


HANDLER = Handler(
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    versions=(0, 1),
    needs=NEEDS,
    handle=handle,
    parts=(divided_by(NEEDS[0], most=50, repeats=Repeats.REFUSED),),
)
