"""DescribeConfigs tells the values of configurations of topics, groups and this broker, and their sources.

It also tells the levels of the broker's loggers.
"""

from collections.abc import Sequence

from exacta.config.dynamic import ALL_BROKERS, ConfigSource, Value
from exacta.config.options import Option, options
from exacta.config.topic import TOPIC_CONFIGS, ConfigType
from exacta.config.topic_values import values_of
from exacta.core.state.state import State
from exacta.kafka import loggers
from exacta.kafka.broker import BrokerContext
from exacta.kafka.config_source import BROKER_LOGGER_SOURCE, SOURCE_NUMBERS, ResourceType, configured
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Each
from exacta.kafka.parts import Parts
from exacta.kafka.request_size import first_time
from exacta.kafka.topic_names import is_legal_name
from exacta.ports.authorizer import Operation
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k32_describe_configs import (
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

NEEDS = (Each(Operation.DESCRIBE_CONFIGS, configured, "resources", "results", name="resource_name"),)


def handle(broker: BrokerContext, request: DescribeConfigsRequest, context: RequestContext, reply: Reply) -> None:
    """Describe each resource; synonyms and documentation only where asked for."""

    def view(state: State, now_ms: int) -> DescribeConfigsResponse:
        results = []
        is_first = first_time()
        topics = _TopicConfigs(broker, request)
        for resource in request.resources:
            if is_first((resource.resource_type, resource.resource_name)):
                result = _describe(broker, state, resource, topics)
                if resource.resource_type != ResourceType.TOPIC:
                    _leave_out(request, result)
                results.append(result)
        return DescribeConfigsResponse(results=results)

    broker.read(context, view, reply)


def _leave_out(request: DescribeConfigsRequest, result: DescribeConfigsResult) -> None:
    for config in result.configs:
        if not request.include_synonyms:
            config.synonyms = []
        if not request.include_documentation:
            config.documentation = None


def _describe(
    broker: BrokerContext, state: State, resource: DescribeConfigsResource, topics: "_TopicConfigs"
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(resource_type=resource.resource_type, resource_name=resource.resource_name)
    name = resource.resource_name
    configs: list[DescribeConfigsResourceResult] = []
    match resource.resource_type:
        case ResourceType.TOPIC if not is_legal_name(name):
            result.error_code = ErrorCode.INVALID_TOPIC_EXCEPTION
        case ResourceType.TOPIC if name not in state.topics:
            result.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        case ResourceType.TOPIC:
            result.configs = topics.described(state.topics[name].configs, resource.configuration_keys)
            return result
        case ResourceType.BROKER if name == str(broker.node_id):
            configs = [_broker_config(broker, option) for option in options().values()]
        case ResourceType.BROKER if name == ALL_BROKERS:
            configs = _of_all_brokers(broker)
        case ResourceType.BROKER_LOGGER if name == str(broker.node_id):
            configs = [_logger_config(each) for each in loggers.names()]
        case ResourceType.BROKER | ResourceType.BROKER_LOGGER if name:
            result.error_code = ErrorCode.INVALID_REQUEST
            result.error_message = f"this is broker {broker.node_id}"
        case ResourceType.GROUP | ResourceType.CLIENT_METRICS | ResourceType.BROKER_LOGGER if not name:
            result.error_code = ErrorCode.INVALID_REQUEST
            result.error_message = "a name is needed"
        case ResourceType.GROUP:
            configs = _group_configs(broker)
        case ResourceType.CLIENT_METRICS:
            pass
        case unknown:
            result.error_code = ErrorCode.INVALID_REQUEST
            result.error_message = f"there are no resources of type {unknown} here"
    keys = frozenset(resource.configuration_keys or ())
    result.configs = [config for config in configs if not keys or config.name in keys]
    return result


class _TopicConfigs:
    """Describes the configurations of topics for one request: of those topics that set nothing, once."""

    def __init__(self, broker: BrokerContext, request: DescribeConfigsRequest) -> None:
        self._broker = broker
        self._request = request
        self._of_defaults: dict[frozenset[str], list[DescribeConfigsResourceResult]] = {}

    def described(self, configs: dict[str, str], keys: list[str] | None) -> list[DescribeConfigsResourceResult]:
        """Return what was asked for of a topic with these configurations of its own."""
        wanted = frozenset(keys or ())
        if configs:
            return self._describe(configs, wanted)
        found = self._of_defaults.get(wanted)
        if found is None:
            found = self._of_defaults[wanted] = self._describe(configs, wanted)
        return found

    def _describe(self, configs: dict[str, str], wanted: frozenset[str]) -> list[DescribeConfigsResourceResult]:
        described = []
        for name, config in TOPIC_CONFIGS.items():
            if wanted and name not in wanted:
                continue
            values = values_of(configs, name, self._broker.options)
            [(_, value, source), *_] = values
            described.append(
                DescribeConfigsResourceResult(
                    name=name,
                    value=value,
                    config_source=SOURCE_NUMBERS[source],
                    synonyms=_synonyms(values) if self._request.include_synonyms else [],
                    config_type=config.type,
                    documentation=config.description if self._request.include_documentation else None,
                )
            )
        return described


_TYPES = {bool: ConfigType.BOOLEAN, int: ConfigType.INT, str: ConfigType.LIST}


GROUP_CONFIGS = ("consumer.heartbeat.interval.ms", "consumer.session.timeout.ms")
"""The part of a group's configuration that clients know; the broker's options have `group.` before these names."""


def _group_configs(broker: BrokerContext) -> list[DescribeConfigsResourceResult]:
    """Describe what holds for every group: by the names that Kafka has for one group's, and the broker's own."""
    described = []
    for option in options().values():
        name = option.name.removeprefix("group.")
        if name in GROUP_CONFIGS:
            config = _broker_config(broker, option)
            config.name, config.read_only = name, True
            described.append(config)
    return described


def _logger_config(name: str) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(name=name, value=loggers.level_of(name), config_source=BROKER_LOGGER_SOURCE)


def _broker_config(broker: BrokerContext, option: Option) -> DescribeConfigsResourceResult:
    return _described(option, broker.options.values_of(option))


def _of_all_brokers(broker: BrokerContext) -> list[DescribeConfigsResourceResult]:
    """Describe what was set for all brokers while they ran; only this, as Apache Kafka does."""
    described = []
    for option in options().values():
        values = [each for each in broker.options.values_of(option) if each[2] is ConfigSource.DYNAMIC_DEFAULT]
        if values:
            described.append(_described(option, values))
    return described


def _described(option: Option, values: Sequence[Value]) -> DescribeConfigsResourceResult:
    [(_, value, source), *_] = values
    return DescribeConfigsResourceResult(
        name=option.name,
        value=value,
        read_only=not option.dynamic,
        config_source=SOURCE_NUMBERS[source],
        synonyms=_synonyms(values),
        config_type=_TYPES[option.type],
        documentation=option.description,
    )


def _synonyms(values: Sequence[Value]) -> list[DescribeConfigsSynonym]:
    return [
        DescribeConfigsSynonym(name=name, value=value, source=SOURCE_NUMBERS[source]) for name, value, source in values
    ]


def refused(request: DescribeConfigsRequest, code: ErrorCode, version: int) -> DescribeConfigsResponse:
    """Refuse every resource of a request."""
    return DescribeConfigsResponse(
        results=[
            DescribeConfigsResult(
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
    parts=(Parts("resources", "results", name="resource_name", most=50),),
    refused=refused,
)
