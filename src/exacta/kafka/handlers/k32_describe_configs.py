"""DescribeConfigs: of topics and of this broker, values and where they come from."""

from exacta.config import options
from exacta.core.state import State
from exacta.kafka.broker import BrokerContext
from exacta.kafka.config_source import ConfigSource
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Reply
from exacta.kafka.keys import ApiKey
from exacta.kafka.topic_configs import TOPIC_CONFIGS, ConfigType, default_of
from exacta.protocol.errors import ErrorCode
from exacta.protocol.messages.k32_describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

KEY = ApiKey.DESCRIBE_CONFIGS
MIN_VERSION = 1
MAX_VERSION = 4

TOPIC = 2
BROKER = 4


def handle(broker: BrokerContext, request: DescribeConfigsRequest, context: RequestContext, reply: Reply) -> None:
    """Describe each resource; synonyms and documentation only where asked for."""

    def view(state: State, now_ms: int) -> DescribeConfigsResponse:
        results = []
        for resource in request.resources:
            result = _describe(broker, state, resource)
            for config in result.configs:
                if not request.include_synonyms:
                    config.synonyms = []
                if not request.include_documentation:
                    config.documentation = None
            results.append(result)
        return DescribeConfigsResponse(results=results)

    broker.read(context, view, reply)


def _describe(broker: BrokerContext, state: State, resource: DescribeConfigsResource) -> DescribeConfigsResult:
    result = DescribeConfigsResult(resource_type=resource.resource_type, resource_name=resource.resource_name)
    if resource.resource_type == TOPIC:
        topic = state.topics.get(resource.resource_name)
        if topic is None:
            result.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return result
        configs = _topic_configs(broker, topic.configs)
    elif resource.resource_type == BROKER:
        if resource.resource_name not in ("", str(broker.node_id)):
            result.error_code = ErrorCode.INVALID_REQUEST
            result.error_message = f"this is broker {broker.node_id}"
            return result
        # The empty name asks for cluster-wide dynamic settings, of which there are none.
        configs = _broker_configs(broker) if resource.resource_name else []
    else:
        result.error_code = ErrorCode.INVALID_REQUEST
        result.error_message = f"there are no resources of type {resource.resource_type} here"
        return result
    keys = resource.configuration_keys
    result.configs = [config for config in configs if keys is None or config.name in keys]
    return result


def _topic_configs(broker: BrokerContext, configs: dict[str, str]) -> list[DescribeConfigsResourceResult]:
    described = []
    for name, config in TOPIC_CONFIGS.items():
        default = default_of(broker, name)
        synonyms = [DescribeConfigsSynonym(name=name, value=default, source=ConfigSource.DEFAULT)]
        source = ConfigSource.DEFAULT
        if name in configs:
            source = ConfigSource.TOPIC
            synonyms.insert(0, DescribeConfigsSynonym(name=name, value=configs[name], source=source))
        described.append(
            DescribeConfigsResourceResult(
                name=name,
                value=configs.get(name, default),
                config_source=source,
                synonyms=synonyms,
                config_type=config.type,
                documentation=config.description,
            )
        )
    return described


def _broker_configs(broker: BrokerContext) -> list[DescribeConfigsResourceResult]:
    described = []
    for option in options().values():
        value = getattr(broker.configuration, option.field)
        source = ConfigSource.DEFAULT if value == option.default else ConfigSource.BROKER
        text = str(value).lower()
        described.append(
            DescribeConfigsResourceResult(
                name=option.name,
                value=text,
                read_only=True,  # a running broker's options do not change
                config_source=source,
                synonyms=[DescribeConfigsSynonym(name=option.name, value=text, source=source)],
                config_type=ConfigType.BOOLEAN if option.type is bool else ConfigType.INT,
                documentation=option.description,
            )
        )
    return described
