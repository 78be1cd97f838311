"""kafka-configs sets, shows and removes the quotas of users, clients and addresses."""

from tests.tools.bench import Bench

ALICE = ("--entity-type", "users", "--entity-name", "alice")
APP_OF_ANYBODY = ("--entity-type", "users", "--entity-default", "--entity-type", "clients", "--entity-name", "app")
ADDRESS = ("--entity-type", "ips", "--entity-name", "10.0.0.1")


def alter(bench: Bench, entity: tuple[str, ...], added: str) -> None:
    bench.good("kafka-configs", "--alter", *entity, "--add-config", added)


def described(bench: Bench, entity: tuple[str, ...]) -> str:
    return bench.good("kafka-configs", "--describe", *entity).out


def test_kafka_configs_sets_shows_and_removes_quotas(bench: Bench) -> None:
    alter(bench, ALICE, "producer_byte_rate=1024,request_percentage=12.5")
    alter(bench, APP_OF_ANYBODY, "consumer_byte_rate=2048")
    alter(bench, ADDRESS, "connection_creation_rate=20")
    found = described(bench, ALICE)
    assert "producer_byte_rate=1024.0" in found
    assert "request_percentage=12.5" in found
    assert "consumer_byte_rate=2048.0" in described(bench, APP_OF_ANYBODY)
    assert "connection_creation_rate=20.0" in described(bench, ADDRESS)
    assert "alice" in described(bench, ("--entity-type", "users"))
    bench.good("kafka-configs", "--alter", *ALICE, "--delete-config", "producer_byte_rate")
    assert "producer_byte_rate" not in described(bench, ALICE)
    assert "request_percentage=12.5" in described(bench, ALICE)


def test_a_quota_that_cannot_be_is_told(bench: Bench) -> None:
    refused = bench.bad("kafka-configs", "--alter", *ALICE, "--add-config", "producer_byte_rate=0")
    assert "must be greater than 0" in refused
