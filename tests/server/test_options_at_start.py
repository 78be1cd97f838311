"""A start with other options than before: what was set at run time may not go with them, which is told."""

import logging
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

import exacta

HEARTBEAT = "group.consumer.heartbeat.interval.ms"


@pytest.mark.parametrize(
    ("session_timeout_ms", "told"),
    [
        (45_000, []),
        (
            30_000,
            [
                f"what is set at run time does not go with the other options: {HEARTBEAT} (40000) must not be above "
                "group.consumer.session.timeout.ms (30000)"
            ],
        ),
    ],
)
def test_options_that_do_not_go_together_are_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, session_timeout_ms: int, told: list[str]
) -> None:
    with exacta.Broker(tmp_path) as broker:
        change = ConfigEntry(HEARTBEAT, "40000", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.BROKER, "0", incremental_configs=[change])
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.incremental_alter_configs([resource])[resource].result(20)
    other = {"group.consumer.session.timeout.ms": session_timeout_ms}
    with caplog.at_level(logging.WARNING, "exacta.server"), exacta.Broker(tmp_path, config=other):
        pass
    assert [each.getMessage() for each in caplog.records] == told
