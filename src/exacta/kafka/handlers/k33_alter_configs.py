"""AlterConfigs replaces all configurations of a resource (it is older than IncrementalAlterConfigs)."""

from exacta.front.broker import Broker
from exacta.kafka.config_alteration import Alteration, alter
from exacta.kafka.config_source import configured
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Each
from exacta.kafka.parts import Repeats, divided_by
from exacta.kafka.topic_config_changes import Change, ConfigOperation
from exacta.ports.authorizer import Operation
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.messages.k33_alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

NEEDS = (Each(Operation.ALTER_CONFIGS, configured, "resources", "responses", name="resource_name"),)


def handle(broker: Broker, request: AlterConfigsRequest, context: RequestContext, reply: Reply) -> None:
    """Replace each resource's configurations for itself."""
    wanted = [
        Alteration(
            resource.resource_type,
            resource.resource_name,
            [Change(config.name, ConfigOperation.SET, config.value) for config in resource.configs],
            replaces=True,
        )
        for resource in request.resources
    ]

    def done(responses: list[AlterConfigsResourceResponse]) -> None:
        reply(AlterConfigsResponse(responses=responses))

    alter(broker, context, wanted, request.validate_only, AlterConfigsResourceResponse, done)


HANDLER = Handler(
    ApiKey.ALTER_CONFIGS,
    versions=(0, 2),
    needs=NEEDS,
    handle=handle,
    parts=(divided_by(NEEDS[0], most=50, repeats=Repeats.REFUSED),),
)
