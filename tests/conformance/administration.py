"""The admin clients of librdkafka, kafka-python and aiokafka, as far as they change topics: one interface for all.

Whatever is refused is told by the name of Kafka's error code.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import aiokafka.admin
import aiokafka.errors
import aiokafka.structs
import confluent_kafka
import confluent_kafka.admin
import kafka
import kafka.admin
import kafka.errors

from exacta.protocol.kafka.errors import ErrorCode
from tests.conformance.clients import TopicPartition
from tests.conformance.clients.interface import CALL_TIMEOUT_S

DONE = "NONE"


class Administration(Protocol):
    """Change topics; return the name of an error code, `DONE` among them."""

    def set_configs(self, topic: str, configs: Mapping[str, str]) -> str:
        """Let these be the topic's configurations; what else has been set may stay or go."""
        ...

    def grow(self, topic: str, total: int) -> str:
        """Add partitions."""
        ...

    def delete_records(self, partition: TopicPartition, before: int) -> str | int:
        """Delete records; return where the partition begins then."""
        ...


class Librdkafka:
    """confluent-kafka's admin client; it changes single configurations (IncrementalAlterConfigs)."""

    def __init__(self, bootstrap: str) -> None:
        """Connect."""
        self._admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})

    def set_configs(self, topic: str, configs: Mapping[str, str]) -> str:
        """See `Administration`."""
        admin = confluent_kafka.admin
        set_value = admin.AlterConfigOpType.SET
        entries = [admin.ConfigEntry(*each, incremental_operation=set_value) for each in configs.items()]
        resource = admin.ConfigResource(admin.ResourceType.TOPIC, topic, incremental_configs=entries)
        asked = self._admin.incremental_alter_configs([resource], request_timeout=CALL_TIMEOUT_S)
        return self._outcome(asked[resource])

    def grow(self, topic: str, total: int) -> str:
        """See `Administration`."""
        wanted = confluent_kafka.admin.NewPartitions(topic, total)
        return self._outcome(self._admin.create_partitions([wanted], request_timeout=CALL_TIMEOUT_S)[topic])

    def delete_records(self, partition: TopicPartition, before: int) -> str | int:
        """See `Administration`."""
        wanted = confluent_kafka.TopicPartition(*partition, before)
        asked = self._admin.delete_records([wanted], request_timeout=CALL_TIMEOUT_S)[wanted]
        outcome = self._outcome(asked)
        return int(asked.result().low_watermark) if outcome == DONE else outcome

    @staticmethod
    def _outcome(future: Any) -> str:
        try:
            future.result(CALL_TIMEOUT_S)
        except confluent_kafka.KafkaException as refused:
            return ErrorCode(refused.args[0].code()).name
        return DONE


class KafkaPython:
    """kafka-python's admin client; it changes single configurations (IncrementalAlterConfigs)."""

    def __init__(self, bootstrap: str) -> None:
        """Remember whom to ask."""
        self._bootstrap = bootstrap

    def set_configs(self, topic: str, configs: Mapping[str, str]) -> str:
        """See `Administration`."""
        resource = kafka.admin.ConfigResource(kafka.admin.ConfigResourceType.TOPIC, topic, dict(configs))
        result = self._ask(lambda admin: admin.alter_configs([resource], raise_on_unknown=False)["topic"][topic])
        if result == "OK":
            return DONE
        return ErrorCode(int(str(result).removeprefix("[Error ").partition("]")[0])).name

    def grow(self, topic: str, total: int) -> str:
        """See `Administration`."""
        found = self._ask(lambda admin: admin.create_partitions({topic: total}))
        return found if isinstance(found, str) else DONE

    def delete_records(self, partition: TopicPartition, before: int) -> str | int:
        """See `Administration`."""
        name = kafka.TopicPartition(*partition)
        found = self._ask(lambda admin: admin.delete_records({name: before}))
        return found if isinstance(found, str) else int(found[name]["low_watermark"])

    def _ask(self, call: Callable[[Any], Any]) -> Any:
        admin = kafka.admin.KafkaAdminClient(bootstrap_servers=self._bootstrap)
        try:
            return call(admin)
        except kafka.errors.KafkaError as refused:
            return ErrorCode(refused.errno).name
        finally:
            admin.close()


class Aiokafka:
    """aiokafka's admin client; it replaces all configurations of a topic (AlterConfigs)."""

    def __init__(self, bootstrap: str) -> None:
        """Remember whom to ask."""
        self._bootstrap = bootstrap

    def set_configs(self, topic: str, configs: Mapping[str, str]) -> str:
        """See `Administration`."""
        admin = aiokafka.admin.config_resource
        resource = admin.ConfigResource(admin.ConfigResourceType.TOPIC, topic, dict(configs))
        found = self._ask(lambda client: client.alter_configs([resource]))
        return ErrorCode(found[0].resources[0][0]).name

    def grow(self, topic: str, total: int) -> str:
        """See `Administration`."""
        wanted = {topic: aiokafka.admin.NewPartitions(total)}
        found = self._ask(lambda client: client.create_partitions(wanted))
        return found if isinstance(found, str) else DONE

    def delete_records(self, partition: TopicPartition, before: int) -> str | int:
        """See `Administration`."""
        name = aiokafka.structs.TopicPartition(*partition)
        wanted = {name: aiokafka.admin.RecordsToDelete(before_offset=before)}
        found = self._ask(lambda client: client.delete_records(wanted))
        return found if isinstance(found, str) else int(found[name])

    def _ask(self, call: Callable[[Any], Any]) -> Any:
        async def asked() -> Any:
            client = aiokafka.admin.AIOKafkaAdminClient(bootstrap_servers=self._bootstrap)
            await client.start()
            try:
                return await call(client)
            except aiokafka.errors.KafkaError as refused:
                return ErrorCode(refused.errno).name
            finally:
                await client.close()

        return asyncio.run(asked())


ADMINISTRATIONS: tuple[Callable[[str], Administration], ...] = (Librdkafka, KafkaPython, Aiokafka)
