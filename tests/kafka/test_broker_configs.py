"""Options of the broker that change while it runs (KIP-226), over the wire."""

from typing import Any

import pytest

from exacta.config.dynamic import in_force, text_of
from exacta.config.options import LOWEST_AT_RUN_TIME, SECURITY, configure, options
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from exacta.protocol.kafka.messages.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.kafka.by_hand import Broker
from tests.kafka.test_configs import APPEND, BROKER, DELETE, GROUP, SET, Change, changes, describe, replaced, value
from tests.kafka.test_topics import create
from tests.kafka.wire import Wire, batch, front, produce

ALL = ""
OWN = "0"


def changed(wire: Wire, *asked: Change, name: str = ALL, **more: Any) -> ErrorCode:
    code: ErrorCode = changes(wire, *asked, kind=BROKER, name=name, **more).error_code
    return code


def synonyms(wire: Wire, option: str, name: str = OWN) -> list[tuple[str, int]]:
    """Return the values of an option with their sources, the one in force first."""
    [config] = describe(wire, BROKER, name, keys=[option], include_synonyms=True).configs
    assert (config.value, config.config_source) == (config.synonyms[0].value, config.synonyms[0].source)
    assert config.read_only is False
    return [(each.value, each.source) for each in config.synonyms]


def test_the_values_of_an_option_from_all_places() -> None:
    with front(message_max_bytes=2_000_000) as broker:
        wire = broker.connect()
        assert changed(wire, ("message.max.bytes", SET, " +3000000 ")) == ErrorCode.NONE
        assert changed(wire, ("message.max.bytes", SET, "4000000"), name=OWN) == ErrorCode.NONE
        static = [("2000000", 4), ("1048588", 5)]
        assert synonyms(wire, "message.max.bytes") == [("4000000", 2), ("3000000", 3), *static]
        create(wire)
        assert value(wire, "max.message.bytes") == ("4000000", 2)
        assert [each.name for each in describe(wire, BROKER, ALL).configs] == ["message.max.bytes"]
        assert synonyms(wire, "message.max.bytes", ALL) == [("3000000", 3)]
        assert changed(wire, ("message.max.bytes", DELETE, None), name=OWN) == ErrorCode.NONE
        assert synonyms(wire, "message.max.bytes") == [("3000000", 3), *static]
        assert changed(wire, ("message.max.bytes", DELETE, None)) == ErrorCode.NONE
        assert synonyms(wire, "message.max.bytes") == static
        assert describe(wire, BROKER, ALL).configs == []


def test_the_next_batch_goes_by_it(wire: Wire) -> None:
    create(wire)
    assert produce(wire, batch(b"x")).error_code == ErrorCode.NONE
    changed(wire, ("message.max.bytes", SET, "5"))
    assert produce(wire, batch(b"x")).error_code == ErrorCode.MESSAGE_TOO_LARGE


def test_a_restart_remembers_it_and_it_counts_before_what_the_broker_is_started_with() -> None:
    with front() as broker:
        changed(broker.connect(), ("log.retention.ms", SET, "5"), ("auto.create.topics.enable", SET, " FALSE "))
        storage = broker.storage
    with front(storage=storage, log_retention_ms=7) as again:
        wire = again.connect()
        assert synonyms(wire, "log.retention.ms") == [("5", 3), ("7", 4), ("604800000", 5)]
        assert synonyms(wire, "auto.create.topics.enable") == [("false", 3), ("true", 5)]


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ([("node.id", SET, "1")], ErrorCode.INVALID_REQUEST),
        ([("no.such", SET, "1")], ErrorCode.INVALID_REQUEST),
        ([("log.retention.ms", SET, "5"), ("node.id", SET, "1")], ErrorCode.INVALID_REQUEST),
        ([("log.retention.ms", SET, "soon")], ErrorCode.INVALID_REQUEST),
        ([("log.retention.ms", SET, "-2")], ErrorCode.INVALID_REQUEST),
        ([("log.retention.ms", SET, None)], ErrorCode.INVALID_REQUEST),
        ([("log.retention.ms", APPEND, "5")], ErrorCode.INVALID_CONFIG),
        ([("message.max.bytes", SET, str(200 << 20))], ErrorCode.INVALID_REQUEST),
        ([("max.connections", SET, "9")], ErrorCode.INVALID_REQUEST),
        ([("max.connections.per.ip", SET, "0")], ErrorCode.INVALID_REQUEST),
        ([("group.consumer.heartbeat.interval.ms", SET, "1")], ErrorCode.INVALID_REQUEST),
        ([("no.such", DELETE, None)], ErrorCode.NONE),
        ([], ErrorCode.NONE),
    ],
)
@pytest.mark.parametrize("name", [ALL, OWN])
def test_what_cannot_be_changes_nothing(wire: Wire, asked: list[Change], code: ErrorCode, name: str) -> None:
    answer = changes(wire, *asked, kind=BROKER, name=name)
    assert answer.error_code == code
    assert bool(answer.error_message) == (code != ErrorCode.NONE)
    assert {config.config_source for config in describe(wire, BROKER, OWN).configs} == {5}


@pytest.mark.parametrize("name", [ALL, OWN])
@pytest.mark.parametrize("operation", [SET, APPEND])
def test_no_security_option_can_be_set(wire: Wire, name: str, operation: int) -> None:
    listeners = {f"listener.name.sasl.{each}" for each in SECURITY}
    for option in sorted({*SECURITY, *listeners, "listeners", "listener.security.protocol.map"}):
        asked = (option, operation, value_of(option))
        assert changed(wire, asked, name=name) == ErrorCode.INVALID_CONFIG, option
        assert changed(wire, ("log.retention.ms", SET, "5"), asked, name=name) == ErrorCode.INVALID_CONFIG, option
        whole = replaced(wire, {option: value_of(option)}, kind=BROKER, name=name)
        assert whole.error_code == ErrorCode.INVALID_CONFIG, option
    assert describe(wire, BROKER, ALL).configs == []


def value_of(option: str) -> str:
    """Return a value that the option can have at a start."""
    known = options().get(option)
    return "x" if known is None else text_of(known.default) or "x"


def test_an_option_is_not_given_back_if_the_rest_would_not_go_together(wire: Wire) -> None:
    too_much = str(200 << 20)
    assert changed(wire, ("message.max.bytes", SET, "5"), name=OWN) == ErrorCode.NONE
    assert changed(wire, ("message.max.bytes", SET, too_much)) == ErrorCode.NONE
    answer = changes(wire, ("message.max.bytes", DELETE, None), kind=BROKER, name=OWN)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert "must not be above socket.request.max.bytes" in answer.error_message


@pytest.mark.parametrize(("name", "lowest"), LOWEST_AT_RUN_TIME.items())
def test_what_locks_out_is_refused_and_passed_over_where_a_log_of_before_has_it(name: str, lowest: int) -> None:
    """A start may have it, since the next start need not have it."""
    too_low = lowest - 1
    options: dict[str, Any] = {name.replace(".", "_"): too_low}
    with front(**options) as broker:
        wire = broker.connect()
        answer = changes(wire, (name, SET, str(too_low)), kind=BROKER, name=ALL)
        assert answer.error_code == ErrorCode.INVALID_REQUEST
        assert answer.error_message.startswith(f"{name} must be at least {lowest} while the broker runs, not {too_low}")
        assert changed(wire, (name, SET, str(lowest))) == ErrorCode.NONE
        assert synonyms(wire, name)[:2] == [(str(lowest), 3), (str(too_low), 4)]
    static = configure({})
    assert in_force(static, {ALL: {name: str(too_low)}, OWN: {name: str(too_low)}}) is static


def test_validate_only_changes_nothing(wire: Wire) -> None:
    assert changed(wire, ("log.retention.ms", SET, "5"), validate_only=True) == ErrorCode.NONE
    assert synonyms(wire, "log.retention.ms") == [("604800000", 5)]


def test_alter_configs_replaces_all_that_is_set(wire: Wire) -> None:
    changed(wire, ("log.retention.ms", SET, "5"))
    assert replaced(wire, {"log.retention.bytes": "7"}, kind=BROKER, name=ALL).error_code == ErrorCode.NONE
    assert [each.name for each in describe(wire, BROKER, ALL).configs] == ["log.retention.bytes"]


def test_the_text_of_an_option_keeps_its_case() -> None:
    with front(web_allowed_hosts="Example.org") as broker:
        [config] = describe(broker.connect(), BROKER, OWN, keys=["web.allowed.hosts"]).configs
    assert (config.value, config.config_source) == ("Example.org", 4)


def test_groups_show_it_and_cannot_change_it(wire: Wire) -> None:
    changed(wire, ("group.consumer.heartbeat.interval.ms", SET, "3000"))
    [config] = describe(wire, GROUP, "any", keys=["consumer.heartbeat.interval.ms"]).configs
    assert (config.value, config.config_source, config.read_only) == ("3000", 3, True)


def test_a_topic_is_not_refused_by_an_option_that_is_not_durable_yet() -> None:
    broker = Broker()
    operator, client = broker.connect(), broker.connect()
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=3)

    def alter(value: str) -> IncrementalAlterConfigsRequest:
        config = AlterableConfig(name="accept.any.replication.factor", config_operation=SET, value=value)
        resource = AlterConfigsResource(resource_type=BROKER, resource_name=ALL, configs=[config])
        return IncrementalAlterConfigsRequest(resources=[resource])

    assert broker.ask(operator, alter("true"), 1).responses[0].error_code == ErrorCode.NONE
    broker.hold_syncs()
    operator.send(alter("false"), 1)
    broker.settle()
    client.send(CreateTopicsRequest(topics=[topic]), 5)
    broker.settle()
    assert client.answers() == []
    broker.release_syncs()
    broker.settle()
    [(_, answer)] = client.answers()
    assert answer.topics[0].error_code == ErrorCode.INVALID_REPLICATION_FACTOR
