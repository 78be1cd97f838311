"""An administrator: makes the topics, changes one, deletes records, and deletes a topic to make it again."""

from collections.abc import Mapping

from exacta.core.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from exacta.core.values.internal_topics import GROUP_OFFSETS
from exacta.core.values.transaction_buffer import MARKER, SIDECAR, TRANSACTION_BUFFER
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages import (
    k10_find_coordinator,
    k19_create_topics,
    k20_delete_topics,
    k21_delete_records,
    k44_incremental_alter_configs,
)
from simulation.clients.batches import batch
from simulation.clients.connection import Disconnected
from simulation.clients.surroundings import Surroundings
from simulation.clients.transactional import produce_request

TOPICS = {"in": 2, "out": 2, "plain": 2, "short": 1, "keyed": 2, "aging": 1}
NO_POLICIES: Mapping[str, Mapping[str, str]] = {}
TO_THE_END = -1


async def create(
    here: Surroundings, topics: dict[str, int], policies: Mapping[str, Mapping[str, str]] = NO_POLICIES
) -> None:
    """Make topics that are not there; `policies` are their configurations."""
    request = k19_create_topics.CreateTopicsRequest(
        topics=[
            k19_create_topics.CreatableTopic(
                name=name,
                num_partitions=partitions,
                replication_factor=1,
                configs=[
                    k19_create_topics.CreatableTopicConfig(name=config, value=value)
                    for config, value in policies.get(name, {}).items()
                ],
            )
            for name, partitions in topics.items()
        ]
    )
    while True:
        answer = await here.connection.until_answered(request, 5)
        if all(each.error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS) for each in answer.topics):
            return
        await here.connection.back_off()


async def intrude(here: Surroundings) -> ErrorCode:
    """Write into the topic in which Apache Kafka keeps groups' offsets; return what the broker answers."""
    lookup = k10_find_coordinator.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
    await here.connection.until_answered(lookup, 4)
    forged = batch([b"forged"], (NO_PRODUCER_ID, NO_PRODUCER_EPOCH), -1, transactional=False, now_ms=here.now_ms())
    answer = await here.connection.until_answered(produce_request((GROUP_OFFSETS, 0), forged, None), 8)
    return ErrorCode(answer.responses[0].partition_responses[0].error_code)


async def administrate(here: Surroundings) -> bool:
    """Delete a little, now and then, and change where transactions lie until they end."""
    while not here.is_over():
        await here.think(15.0)
        try:
            dice = here.chance.random()
            if dice < 0.15 and here.history.buffers:
                await _change_buffer(here)
            elif dice < 0.6:
                place = ("plain", here.chance.randrange(TOPICS["plain"]))
                offset = here.chance.choice([TO_THE_END, here.chance.randint(0, 40)])
                entry = k21_delete_records.DeleteRecordsPartition(partition_index=place[1], offset=offset)
                topic = k21_delete_records.DeleteRecordsTopic(name=place[0], partitions=[entry])
                await here.connection.ask(k21_delete_records.DeleteRecordsRequest(topics=[topic]), 2)
            else:
                await here.connection.ask(k20_delete_topics.DeleteTopicsRequest(topic_names=["short"]), 5)
                await here.think(0.5)
                await _make_short(here)
        except Disconnected:
            await here.connection.back_off()
    await _make_short(here)
    await lift_quotas(here)
    return False


async def _make_short(here: Surroundings) -> None:
    buffers = here.history.buffers.get("short", set())
    policies = {"short": {TRANSACTION_BUFFER: here.chance.choice(sorted(buffers))}} if buffers else NO_POLICIES
    await create(here, {"short": TOPICS["short"]}, policies)


async def _change_buffer(here: Surroundings) -> None:
    """Change where transactions that begin later lie until they end, in one topic; raise Disconnected."""
    topic, buffer = here.chance.choice(sorted(TOPICS)), here.chance.choice([MARKER, SIDECAR])
    here.history.buffers.setdefault(topic, {MARKER}).add(buffer)
    answer = await here.connection.ask(_alter(topic, {TRANSACTION_BUFFER: buffer}), 1)
    code = answer.responses[0].error_code
    if code not in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
        here.history.refusals.append(f"refused: {topic} does not become {buffer}: {answer.responses[0].error_message}")


def _alter(topic: str, configs: Mapping[str, str]) -> k44_incremental_alter_configs.IncrementalAlterConfigsRequest:
    wanted = [
        k44_incremental_alter_configs.AlterableConfig(name=name, config_operation=0, value=value)
        for name, value in configs.items()
    ]
    resource = k44_incremental_alter_configs.AlterConfigsResource(resource_type=2, resource_name=topic, configs=wanted)
    return k44_incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource])


async def lift_quotas(here: Surroundings) -> None:
    """Let everything be kept that subscriptions have not acknowledged, so that those who write come to their end."""
    unbounded = dict.fromkeys(("pulsar.backlog.quota.bytes", "pulsar.backlog.quota.ms"), "-1")
    answer = await here.connection.until_answered(_alter("aging", unbounded), 1)
    if answer.responses[0].error_code != ErrorCode.NONE:
        here.history.refusals.append(f"refused: no quotas any more: {answer.responses[0].error_message}")
