"""DescribeConfigs tells the values of configurations of topics, groups and this broker, and their sources.

It also tells the levels of the broker's loggers.
"""

from collections.abc import Mapping, Sequence

from exacta.config.dynamic import ALL_BROKERS, ConfigSource, Value
from exacta.config.options import Option, options
from exacta.config.topic import TOPIC_CONFIGS, ConfigType
from exacta.config.topic_values import values_of
from exacta.front.broker import Broker
from exacta.kafka import loggers
from exacta.kafka.at_follower import CATCHES_UP
from exacta.kafka.config_source import BROKER_LOGGER_SOURCE, SOURCE_NUMBERS, ResourceType, configured
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Each
from exacta.kafka.parts import Repeats, divided_by
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

NEEDS = (Each(Operation.DESCRIBE_CONFIGS, configured, "resources", "results", name="resource_name"),)


def handle(broker: Broker, request: DescribeConfigsRequest, context: RequestContext, reply: Reply) -> None:
    """Describe each resource; synonyms and documentation only where asked for."""
    describer, is_first = _Describer(broker, request), first_time()
    results = [
        describer.result(each) for each in request.resources if is_first((each.resource_type, each.resource_name))
    ]
    broker.when_durable(context, lambda: reply(DescribeConfigsResponse(results=results)))


GROUP_CONFIGS = ("consumer.heartbeat.interval.ms", "consumer.session.timeout.ms")
"""The part of a group's configuration that clients know; the broker's options have `group.` before these names."""

_TYPES = {bool: ConfigType.BOOLEAN, int: ConfigType.INT, str: ConfigType.LIST}


class _Describer:
    """Describes what one request asks for; the topics that set nothing have one description, which they share."""

    def __init__(self, broker: Broker, request: DescribeConfigsRequest) -> None:
        self._broker = broker
        self._request = request
        self._of_defaults: dict[frozenset[str], list[DescribeConfigsResourceResult]] = {}

    def result(self, resource: DescribeConfigsResource) -> DescribeConfigsResult:
        """Return the answer about one resource."""
        result = DescribeConfigsResult(resource_type=resource.resource_type, resource_name=resource.resource_name)
        name, node_id = resource.resource_name, str(self._broker.cluster.node_id)
        keys = frozenset(resource.configuration_keys or ())
        configs: list[DescribeConfigsResourceResult] = []
        match resource.resource_type:
            case ResourceType.TOPIC if not is_legal_name(name):
                result.error_code = ErrorCode.INVALID_TOPIC_EXCEPTION
            case ResourceType.TOPIC:
                own = self._broker.topic_configs(name)
                if own is not None:
                    result.configs = self._of_topic(own, keys)
                    return result
                result.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            case ResourceType.BROKER if name == node_id:
                configs = [self._option(each, self._broker.options.values_of(each)) for each in options().values()]
            case ResourceType.BROKER if name == ALL_BROKERS:
                configs = self._of_all_brokers()
            case ResourceType.BROKER_LOGGER if name == node_id:
                configs = [_logger_config(each) for each in loggers.names()]
            case ResourceType.BROKER | ResourceType.BROKER_LOGGER if name:
                result.error_code = ErrorCode.INVALID_REQUEST
                result.error_message = f"this is broker {node_id}"
            case ResourceType.GROUP | ResourceType.CLIENT_METRICS | ResourceType.BROKER_LOGGER if not name:
                result.error_code = ErrorCode.INVALID_REQUEST
                result.error_message = "a name is needed"
            case ResourceType.GROUP:
                configs = self._of_group()
            case ResourceType.CLIENT_METRICS:
                pass
            case unknown:
                result.error_code = ErrorCode.INVALID_REQUEST
                result.error_message = f"there are no resources of type {unknown} here"
        result.configs = [config for config in configs if not keys or config.name in keys]
        return result

    def _of_topic(self, configs: Mapping[str, str], keys: frozenset[str]) -> list[DescribeConfigsResourceResult]:
        """Describe the configurations with these names of a topic that has these of its own; no names: all."""
        if not configs and keys in self._of_defaults:
            return self._of_defaults[keys]
        described = [
            self._config(
                name, values_of(configs, name, self._broker.options), config_type=config.type, text=config.description
            )
            for name, config in TOPIC_CONFIGS.items()
            if not keys or name in keys
        ]
        if not configs:
            self._of_defaults[keys] = described
        return described

    def _of_group(self) -> list[DescribeConfigsResourceResult]:
        """Describe what holds for every group: by the names that Kafka has for one group's, and the broker's own."""
        described = []
        for option in options().values():
            name = option.name.removeprefix("group.")
            if name in GROUP_CONFIGS:
                config = self._option(option, self._broker.options.values_of(option))
                config.name, config.read_only = name, True
                described.append(config)
        return described

    def _of_all_brokers(self) -> list[DescribeConfigsResourceResult]:
        """Describe what was set for all brokers while they ran; only this, as Apache Kafka does."""
        described = []
        for option in options().values():
            found = self._broker.options.values_of(option)
            values = [each for each in found if each[2] is ConfigSource.DYNAMIC_DEFAULT]
            if values:
                described.append(self._option(option, values))
        return described

    def _option(self, option: Option, values: Sequence[Value]) -> DescribeConfigsResourceResult:
        config = self._config(option.name, values, config_type=_TYPES[option.type], text=option.description)
        config.read_only = not option.dynamic
        if option.is_secret:
            config.value, config.is_sensitive, config.config_type = None, True, ConfigType.PASSWORD
            for each in config.synonyms:
                each.value = None
        return config

    def _config(
        self, name: str, values: Sequence[Value], *, config_type: ConfigType, text: str
    ) -> DescribeConfigsResourceResult:
        [(_, value, source), *_] = values
        synonyms = values if self._request.include_synonyms else ()
        return DescribeConfigsResourceResult(
            name=name,
            value=value,
            config_source=SOURCE_NUMBERS[source],
            synonyms=[DescribeConfigsSynonym(name=n, value=v, source=SOURCE_NUMBERS[s]) for n, v, s in synonyms],
            config_type=config_type,
            documentation=text if self._request.include_documentation else None,
        )


def _logger_config(name: str) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(name=name, value=loggers.level_of(name), config_source=BROKER_LOGGER_SOURCE)


HANDLER = Handler(
    ApiKey.DESCRIBE_CONFIGS,
    versions=(1, 4),
    needs=NEEDS,
    at_follower=CATCHES_UP,
    handle=handle,
    parts=(divided_by(NEEDS[0], most=50, repeats=Repeats.LEFT_OUT),),
)
