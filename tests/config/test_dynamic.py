"""The options in force: what was set for a broker while it ran, for all, at its start, nowhere, in this order."""

from exacta.config.configuration import Configuration
from exacta.config.dynamic import BrokerConfigs, ConfigSource, DynamicConfiguration
from exacta.config.options import configure, options
from exacta.config.retention import retention_rules
from exacta.records.admission import KnownRules


class Broker:
    """A broker with the id 3 and what is set for it."""

    def __init__(self, **started_with: int) -> None:
        self.configs: BrokerConfigs = {}
        self.static = configure({"node_id": 3, **started_with})
        self.options = DynamicConfiguration(self.static, lambda: self.configs)

    @property
    def now(self) -> Configuration:
        return self.options.now

    def values(self, name: str) -> list[tuple[str, ConfigSource]]:
        return [(value, source) for _, value, source in self.options.values_of(options()[name])]


def test_the_narrower_place_counts() -> None:
    broker = Broker(message_max_bytes=4000)
    assert broker.now is broker.static
    broker.configs = {"": {"message.max.bytes": "5000"}, "4": {"message.max.bytes": "7000"}}
    assert broker.now.message_max_bytes == 5000
    broker.configs = {**broker.configs, "3": {"message.max.bytes": "6000"}}
    assert broker.now.message_max_bytes == 6000
    assert broker.values("message.max.bytes") == [
        ("6000", ConfigSource.DYNAMIC_BROKER),
        ("5000", ConfigSource.DYNAMIC_DEFAULT),
        ("4000", ConfigSource.STATIC),
        ("1048588", ConfigSource.DEFAULT),
    ]
    broker.configs = {}
    assert broker.now == broker.static


def test_the_same_object_until_something_changes() -> None:
    broker = Broker()
    broker.configs = {"": {"log.retention.ms": "5"}}
    assert broker.now is broker.now


def test_what_another_version_has_set_is_passed_over() -> None:
    broker = Broker()
    broker.configs = {"": {"no.such": "1", "node.id": "7", "fetch.max.bytes": "1", "log.retention.ms": "5"}}
    assert broker.now == configure({"node_id": 3, "log_retention_ms": 5})
    assert broker.values("fetch.max.bytes") == [("57671680", ConfigSource.DEFAULT)]
    assert broker.values("node.id") == [("3", ConfigSource.STATIC), ("0", ConfigSource.DEFAULT)]


def test_what_topics_keep_goes_by_what_is_in_force() -> None:
    broker = Broker(log_retention_ms=10)
    rules = retention_rules(lambda: broker.now)
    of_its_own = {"retention.bytes": "7"}
    assert [rules({}).retention_ms, rules(of_its_own).retention_ms] == [10, 10]
    broker.configs = {"": {"log.retention.ms": "5", "pulsar.message.ttl.ms": "6"}}
    assert [rules({}).retention_ms, rules(of_its_own).retention_ms] == [5, 5]
    assert [rules({}).backlog.ttl_ms, rules(of_its_own).backlog.ttl_ms] == [6, 6]


def test_a_compacted_topic_waits_for_its_files_as_long_as_the_broker_says() -> None:
    broker = Broker(log_roll_ms=10)
    rules = retention_rules(lambda: broker.now)

    def waits_ms(**own: str) -> int:
        compacting = rules({"cleanup.policy": "compact", **own}).compacting
        assert compacting is not None
        return compacting.segment_ms

    assert waits_ms() == 10
    broker.configs = {"": {"log.roll.ms": "5"}}
    assert (waits_ms(), waits_ms(**{"segment.ms": "7"})) == (5, 7)


def test_what_producers_may_send_goes_by_what_is_in_force() -> None:
    broker = Broker()
    rules, of_its_own = KnownRules(lambda: broker.now), {"compression.type": "gzip"}

    def most_bytes() -> list[int]:
        return [found.max_bytes for found in (rules.of("t", {}), rules.of("u", of_its_own)) if found is not None]

    assert most_bytes() == [1_048_588] * 2
    broker.configs = {"3": {"message.max.bytes": "5000"}}
    assert most_bytes() == [5000] * 2


def test_each_dynamic_option_is_one_and_no_limit_of_the_core() -> None:
    dynamic = {option.name for option in options().values() if option.dynamic}
    assert {"log.retention.ms", "message.max.bytes"} <= dynamic
    for option in options().values():
        if option.dynamic:
            assert not hasattr(Configuration().limits(), option.field)
