"""Deleting groups by the admin clients of librdkafka and kafka-python, under a consumer of every library."""

from collections.abc import Callable

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from kafka.admin import KafkaAdminClient

from tests.conformance.clients.interface import CALL_TIMEOUT_S
from tests.conformance.scenario import Scenario, values
from tests.conformance.test_groups import Member, drive


def by_librdkafka(bootstrap: str, group_id: str) -> str:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    try:
        admin.delete_consumer_groups([group_id], request_timeout=CALL_TIMEOUT_S)[group_id].result(CALL_TIMEOUT_S)
    except KafkaException as refused:
        return str(refused.args[0].name())
    return "deleted"


def by_kafka_python(bootstrap: str, group_id: str) -> str:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        answer = admin.delete_groups([group_id])[group_id]
    finally:
        admin.close()
    words = {"OK": "deleted", "NonEmptyGroupError": "NON_EMPTY_GROUP", "GroupIdNotFoundError": "GROUP_ID_NOT_FOUND"}
    return words[answer if isinstance(answer, str) else type(answer).__name__]


@pytest.mark.parametrize("delete", [by_librdkafka, by_kafka_python])
def test_a_group_is_deleted_once_its_member_has_left(scenario: Scenario, delete: Callable[[str, str], str]) -> None:
    partition, group_id = scenario.partition(), scenario.new_name("group")
    scenario.fill(partition, values("v", 3))
    member = Member(scenario.consumer(group_id), partition.topic)
    drive([member], lambda: len(member.records) == 3, "all records")
    assert delete(scenario.bootstrap, group_id) == "NON_EMPTY_GROUP"
    member.consumer.close()
    assert scenario.committed(group_id, partition) == 3
    assert delete(scenario.bootstrap, group_id) == "deleted"
    assert delete(scenario.bootstrap, group_id) == "GROUP_ID_NOT_FOUND"
    assert scenario.committed(group_id, partition) is None
