"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources over the wire, and the topics' values."""

from typing import Any

import pytest

from exacta.config.options import options
from exacta.config.topic import TOPIC_CONFIGS, UnfitValue, checked
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages import k33_alter_configs as k33
from exacta.protocol.kafka.messages import k44_incremental_alter_configs as k44
from exacta.protocol.kafka.messages.k19_create_topics import CreatableTopicConfig
from exacta.protocol.kafka.messages.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from exacta.protocol.kafka.messages.k74_list_config_resources import ListConfigResourcesRequest
from tests.kafka.test_topics import create
from tests.kafka.wire import Wire, front

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


def describe(wire: Wire, kind: int, name: str, version: int = 4, **more: Any) -> Any:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=more.pop("keys", None)
    )
    return wire.ask(DescribeConfigsRequest(resources=[resource], **more), version).results[0]


def value(wire: Wire, name: str, topic: str = "t") -> tuple[str, int]:
    """Return a topic's configuration and where it comes from."""
    [config] = describe(wire, TOPIC, topic, keys=[name]).configs
    return config.value, config.config_source


Change = tuple[str, int, str | None]


def changes(
    wire: Wire, *configs: Change, kind: int = TOPIC, name: str = "t", version: int = 1, validate_only: bool = False
) -> Any:
    """Ask IncrementalAlterConfigs for one resource; return its answer."""
    asked = [k44.AlterableConfig(name=each, config_operation=what, value=text) for each, what, text in configs]
    resource = k44.AlterConfigsResource(resource_type=kind, resource_name=name, configs=asked)
    request = k44.IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
    [answer] = wire.ask(request, version).responses
    assert (answer.resource_type, answer.resource_name) == (kind, name)
    return answer


def replaced(
    wire: Wire, configs: dict[str, str | None], *, kind: int = TOPIC, name: str = "t", version: int = 2
) -> Any:
    """Ask AlterConfigs for one resource; return its answer."""
    asked = [k33.AlterableConfig(name=each, value=text) for each, text in configs.items()]
    resource = k33.AlterConfigsResource(resource_type=kind, resource_name=name, configs=asked)
    [answer] = wire.ask(k33.AlterConfigsRequest(resources=[resource]), version).responses
    return answer


class TestDescribeConfigs:
    @pytest.mark.parametrize("version", range(1, 5))
    def test_a_topic(self, wire: Wire, version: int) -> None:
        create(wire, configs=[CreatableTopicConfig(name="retention.ms", value="1000")])
        result = describe(wire, TOPIC, "t", version, include_synonyms=True)
        configs = {config.name: config for config in result.configs}
        assert set(configs) == set(TOPIC_CONFIGS)
        assert (configs["retention.ms"].value, configs["retention.ms"].config_source) == ("1000", 1)
        assert [synonym.value for synonym in configs["retention.ms"].synonyms] == ["1000", "604800000"]
        assert (configs["max.message.bytes"].value, configs["max.message.bytes"].config_source) == ("1048588", 5)

    def test_what_the_broker_was_started_with_counts_for_its_topics(self) -> None:
        with front(message_max_bytes=2_000_000) as broker:
            wire = broker.connect()
            create(wire, configs=[CreatableTopicConfig(name="max.message.bytes", value="5")])
            [config] = describe(wire, TOPIC, "t", keys=["max.message.bytes"], include_synonyms=True).configs
            assert [(each.name, each.value, each.source) for each in config.synonyms] == [
                ("max.message.bytes", "5", 1),
                ("message.max.bytes", "2000000", 4),
                ("message.max.bytes", "1048588", 5),
            ]
            changes(wire, ("max.message.bytes", DELETE, None))
            assert value(wire, "max.message.bytes") == ("2000000", 4)

    def test_only_what_was_asked_for(self, wire: Wire) -> None:
        create(wire)
        result = describe(wire, TOPIC, "t", keys=["retention.ms", "no.such"])
        assert [config.name for config in result.configs] == ["retention.ms"]
        assert result.configs[0].synonyms == []
        assert result.configs[0].documentation is None
        documented = describe(wire, TOPIC, "t", keys=["retention.ms"], include_documentation=True)
        assert documented.configs[0].documentation
        assert len(describe(wire, TOPIC, "t", keys=[]).configs) == len(TOPIC_CONFIGS)

    def test_the_broker(self) -> None:
        with front(num_partitions=7) as broker:
            result = describe(broker.connect(), BROKER, "0")
        configs = {config.name: config for config in result.configs}
        assert set(configs) == set(options())
        assert (configs["num.partitions"].value, configs["num.partitions"].config_source) == ("7", 4)
        assert (configs["auto.create.topics.enable"].value, configs["auto.create.topics.enable"].config_type) == (
            "true",
            1,
        )

    def test_what_is_not_there(self, wire: Wire) -> None:
        assert describe(wire, TOPIC, "nowhere").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert describe(wire, TOPIC, "b a d").error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        for kind, name in [(BROKER, "17"), (BROKER, "x"), (LOGGER, "17"), (METRICS, ""), (GROUP, ""), (0, "x")]:
            assert describe(wire, kind, name).error_code == ErrorCode.INVALID_REQUEST
        for kind, name in [(BROKER, ""), (METRICS, "x")]:
            result = describe(wire, kind, name)
            assert (result.error_code, result.configs) == (ErrorCode.NONE, [])

    def test_what_holds_for_every_group(self) -> None:
        with front(group_consumer_session_timeout_ms=50_000) as broker:
            result = describe(broker.connect(), GROUP, "any", include_synonyms=True)
        assert {
            config.name: (config.value, config.config_source, config.read_only, config.synonyms[0].name)
            for config in result.configs
        } == {
            "consumer.session.timeout.ms": ("50000", 4, True, "group.consumer.session.timeout.ms"),
            "consumer.heartbeat.interval.ms": ("5000", 5, True, "group.consumer.heartbeat.interval.ms"),
        }


class TestIncrementalAlterConfigs:
    @pytest.mark.parametrize("version", range(2))
    def test_a_value_is_set_and_goes_back_to_its_default(self, wire: Wire, version: int) -> None:
        create(wire)
        assert changes(wire, ("retention.ms", SET, " +1000 "), version=version).error_code == ErrorCode.NONE
        assert value(wire, "retention.ms") == ("1000", 1)
        assert changes(wire, ("retention.ms", DELETE, None), version=version).error_code == ErrorCode.NONE
        assert value(wire, "retention.ms") == ("604800000", 5)

    def test_lists_grow_and_shrink_from_what_is_in_force(self, wire: Wire) -> None:
        create(wire)
        for operation, given, expected in [
            (APPEND, "compact", "delete,compact"),
            (APPEND, "compact, delete", "delete,compact"),
            (SUBTRACT, "delete,nothing", "compact"),
            (SUBTRACT, "compact", ""),
            (APPEND, "delete", "delete"),
            (SET, "compact , delete,compact", "compact,delete"),
        ]:
            assert changes(wire, ("cleanup.policy", operation, given)).error_code == ErrorCode.NONE
            assert value(wire, "cleanup.policy") == (expected, 1)

    @pytest.mark.parametrize(
        ("asked", "code"),
        [
            ([("no.such", SET, "1")], ErrorCode.INVALID_CONFIG),
            ([("no.such", APPEND, "1")], ErrorCode.INVALID_CONFIG),
            ([("no.such", DELETE, None)], ErrorCode.NONE),
            ([("retention.ms", SET, None)], ErrorCode.INVALID_REQUEST),
            ([("retention.ms", SET, "soon")], ErrorCode.INVALID_CONFIG),
            ([("retention.ms", APPEND, "5")], ErrorCode.INVALID_CONFIG),
            ([("retention.ms", SUBTRACT, "5")], ErrorCode.INVALID_CONFIG),
            ([("retention.ms", 7, "5")], ErrorCode.INVALID_REQUEST),
            ([("cleanup.policy", APPEND, "forget")], ErrorCode.INVALID_CONFIG),
            ([("retention.ms", SET, "5"), ("retention.ms", SET, "5")], ErrorCode.INVALID_REQUEST),
            ([("retention.ms", SET, "5"), ("no.such", SET, "1")], ErrorCode.INVALID_CONFIG),
            (
                [("min.compaction.lag.ms", SET, "10"), ("max.compaction.lag.ms", SET, "5")],
                ErrorCode.INVALID_CONFIG,
            ),
            ([], ErrorCode.NONE),
        ],
    )
    def test_what_cannot_be_changes_nothing(self, wire: Wire, asked: list[Change], code: ErrorCode) -> None:
        create(wire)
        answer = changes(wire, *asked)
        assert answer.error_code == code
        assert bool(answer.error_message) == (code != ErrorCode.NONE)
        assert {config.config_source for config in describe(wire, TOPIC, "t").configs} == {5}

    def test_an_unknown_configuration_is_named(self, wire: Wire) -> None:
        create(wire)
        assert "no.such" in changes(wire, ("no.such", SET, "1")).error_message

    def test_which_topic(self, wire: Wire) -> None:
        for name, config, code in [
            ("nowhere", "retention.ms", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ("nowhere", "no.such", ErrorCode.INVALID_CONFIG),
            ("", "retention.ms", ErrorCode.INVALID_REQUEST),
            ("b a d", "retention.ms", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ]:
            assert changes(wire, (config, SET, "1"), name=name).error_code == code

    def test_validate_only_changes_nothing(self, wire: Wire) -> None:
        create(wire)
        assert changes(wire, ("retention.ms", SET, "5"), validate_only=True).error_code == ErrorCode.NONE
        assert value(wire, "retention.ms") == ("604800000", 5)

    def test_resources_for_themselves_but_none_twice(self, wire: Wire) -> None:
        create(wire)
        configs = [k44.AlterableConfig(name="retention.ms", value="5")]
        resources = [
            k44.AlterConfigsResource(resource_type=TOPIC, resource_name=name, configs=configs)
            for name in ("twice", "t", "nowhere", "twice")
        ]
        answers = wire.ask(k44.IncrementalAlterConfigsRequest(resources=resources), 1).responses
        assert [(answer.resource_name, answer.error_code) for answer in answers] == [
            ("twice", ErrorCode.INVALID_REQUEST),
            ("t", ErrorCode.NONE),
            ("nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ("twice", ErrorCode.INVALID_REQUEST),
        ]
        assert value(wire, "retention.ms") == ("5", 1)

    @pytest.mark.parametrize(
        ("kind", "name", "asked", "code"),
        [
            (BROKER, "0", ("num.partitions", SET, "5"), ErrorCode.INVALID_REQUEST),
            (BROKER, "", ("num.partitions", SET, "5"), ErrorCode.INVALID_REQUEST),
            (BROKER, "0", ("num.partitions", DELETE, None), ErrorCode.NONE),
            (BROKER, "7", ("num.partitions", DELETE, None), ErrorCode.INVALID_REQUEST),
            (GROUP, "g", ("consumer.session.timeout.ms", SET, "50000"), ErrorCode.INVALID_CONFIG),
            (GROUP, "g", ("consumer.session.timeout.ms", DELETE, None), ErrorCode.NONE),
            (GROUP, "", ("consumer.session.timeout.ms", DELETE, None), ErrorCode.INVALID_REQUEST),
            (METRICS, "m", ("interval.ms", SET, "1000"), ErrorCode.INVALID_REQUEST),
            (METRICS, "m", ("interval.ms", DELETE, None), ErrorCode.NONE),
            (LOGGER, "0", ("kafka", SET, "INFO"), ErrorCode.INVALID_CONFIG),
            (99, "x", ("a", SET, "b"), ErrorCode.INVALID_REQUEST),
        ],
    )
    def test_what_is_not_altered(self, wire: Wire, kind: int, name: str, asked: Change, code: ErrorCode) -> None:
        answer = changes(wire, asked, kind=kind, name=name)
        assert answer.error_code == code
        assert bool(answer.error_message) == (code != ErrorCode.NONE)


class TestAlterConfigs:
    @pytest.mark.parametrize("version", range(3))
    def test_what_is_not_named_goes_back_to_its_default(self, wire: Wire, version: int) -> None:
        create(wire, configs=[CreatableTopicConfig(name="segment.ms", value="7")])
        assert replaced(wire, {"retention.ms": "5"}, version=version).error_code == ErrorCode.NONE
        assert (value(wire, "retention.ms"), value(wire, "segment.ms")) == (("5", 1), ("604800000", 5))
        assert replaced(wire, {}, version=version).error_code == ErrorCode.NONE
        assert value(wire, "retention.ms") == ("604800000", 5)

    def test_what_cannot_be(self, wire: Wire) -> None:
        create(wire)
        assert replaced(wire, {"no.such": "1"}).error_code == ErrorCode.INVALID_CONFIG
        assert replaced(wire, {"retention.ms": None}).error_code == ErrorCode.INVALID_REQUEST
        assert replaced(wire, {}, name="nowhere").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert replaced(wire, {}, kind=BROKER, name="0").error_code == ErrorCode.NONE
        assert replaced(wire, {"node.id": "5"}, kind=BROKER, name="0").error_code == ErrorCode.INVALID_REQUEST
        assert replaced(wire, {}, kind=LOGGER, name="0").error_code == ErrorCode.INVALID_REQUEST


class TestListConfigResources:
    def listed(self, wire: Wire, *types: int, version: int = 1) -> Any:
        response = wire.ask(ListConfigResourcesRequest(resource_types=list(types)), version)
        return response.error_code, {(each.resource_type, each.resource_name) for each in response.config_resources}

    def test_topics_and_the_broker(self, wire: Wire) -> None:
        create(wire)
        assert self.listed(wire) == (ErrorCode.NONE, {(TOPIC, "t"), (BROKER, "0"), (LOGGER, "0")})
        assert self.listed(wire, BROKER) == (ErrorCode.NONE, {(BROKER, "0")})
        assert self.listed(wire, TOPIC, GROUP) == (ErrorCode.NONE, {(TOPIC, "t")})
        assert self.listed(wire, LOGGER, METRICS) == (ErrorCode.NONE, {(LOGGER, "0")})
        assert self.listed(wire, 99) == (ErrorCode.UNSUPPORTED_VERSION, set())

    def test_version_0_asks_for_metrics_of_clients(self, wire: Wire) -> None:
        create(wire)
        assert self.listed(wire, version=0) == (ErrorCode.NONE, set())


def test_a_restart_remembers_what_was_set() -> None:
    with front() as broker:
        wire = broker.connect()
        create(wire)
        changes(wire, ("retention.ms", SET, "5"))
        storage = broker.storage
    with front(storage=storage) as again:
        assert value(again.connect(), "retention.ms") == ("5", 1)


@pytest.mark.parametrize(
    ("name", "given", "kept"),
    [
        ("cleanup.policy", "compact , delete,compact", "compact,delete"),
        ("cleanup.policy", "", ""),
        ("cleanup.policy", "forget", None),
        ("compression.type", "zstd", "zstd"),
        ("compression.type", "brotli", None),
        ("compression.gzip.level", "-1", "-1"),
        ("compression.gzip.level", "0", None),
        ("leader.replication.throttled.replicas", "", ""),
        ("leader.replication.throttled.replicas", "*", None),
        ("message.timestamp.type", "LogAppendTime", "LogAppendTime"),
        ("message.timestamp.type", "Never", None),
        ("min.insync.replicas", "1", "1"),
        ("min.insync.replicas", "2", None),
        ("min.cleanable.dirty.ratio", "0.10", "0.1"),
        ("min.cleanable.dirty.ratio", "2", None),
        ("min.cleanable.dirty.ratio", "nan", None),
        ("preallocate", " FALSE ", "false"),
        ("preallocate", "no", None),
        ("retention.bytes", "-2", "-2"),
        ("retention.ms", "-1", "-1"),
        ("retention.ms", "-2", None),
        ("retention.ms", "1_000", None),
        ("retention.ms", "", None),
        ("retention.ms", str(2**63), None),
    ],
)
def test_values_of_topic_configurations(name: str, given: str, kept: str | None) -> None:
    if kept is None:
        with pytest.raises(UnfitValue, match=name):
            checked(name, given)
    else:
        assert checked(name, given) == kept


def test_defaults_of_topic_configurations_are_possible_values() -> None:
    for name, config in TOPIC_CONFIGS.items():
        assert checked(name, config.default) == config.default
