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
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k44_incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

KEY = ApiKey.INCREMENTAL_ALTER_CONFIGS
MIN_VERSION = 0
MAX_VERSION = 1

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


def refused(request: IncrementalAlterConfigsRequest, code: ErrorCode, version: int) -> IncrementalAlterConfigsResponse:
    """Refuse every resource of a request."""
    return IncrementalAlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=code, resource_type=resource.resource_type, resource_name=resource.resource_name
            )
            for resource in request.resources
        ]
    )


HANDLER = Handler(
    key=KEY,
    min_version=MIN_VERSION,
    max_version=MAX_VERSION,
    needs=NEEDS,
    handle=handle,
    parts=(divided_by(NEEDS[0], most=50, repeats=Repeats.REFUSED),),
    refused=refused,
)
