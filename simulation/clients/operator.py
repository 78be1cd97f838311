"""An operator who sets options of the running broker (KIP-226), and looks whether the broker goes by them.

`told.py` owns what may be found. One of the options is looked at by what the broker does: whether it takes topics of
three replicas.
"""

import asyncio
from contextlib import suppress
from typing import Any

from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from exacta.protocol.kafka.messages.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from exacta.protocol.kafka.messages.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from simulation.clients.connection import Connection, Disconnected
from simulation.clients.offsets import SETTLED_SECONDS
from simulation.clients.surroundings import Surroundings
from simulation.told import Options, OptionsTold

BROKER, SET, DELETE = 4, 0, 1
ALL, THIS = "", "0"
ANY_FACTOR = "accept.any.replication.factor"
VALUES = {
    ANY_FACTOR: ["true", "false"],
    "fetch.max.bytes": ["2000000", "3000000", "57671680"],
    "group.consumer.heartbeat.interval.ms": ["1000", "2000", "5000"],
    "message.max.bytes": ["1048588", "2000000"],
}
MEANWHILE = 0.5
"""The share of changes during which somebody looks from elsewhere."""
MEANWHILE_SECONDS = (0.0, 0.01)
SOURCES = {2: THIS, 3: ALL}
"""The places of KIP-226 that change while a broker runs, by their numbers: for one broker, and for all."""


async def operate(here: Surroundings) -> bool:
    """Change options now and then, and look at them, until the world is over."""
    here.history.options = here.history.options or OptionsTold()
    await asyncio.sleep(SETTLED_SECONDS)  # of an instance that has crashed something may be under way
    while not here.is_over():
        await here.think(2.0)
        dice = here.chance.random()
        try:
            if dice < 0.6:
                await _alter(here, here.history.options)
            elif dice < 0.8:
                await _describe(here, here.history.options)
            else:
                await _try(here, here.history.options, here.connection)
        except Disconnected:
            await asyncio.sleep(SETTLED_SECONDS)
    return False


async def look_at_options(here: Surroundings) -> None:
    """Look in the end, where somebody has set options."""
    told = here.history.options
    while told is not None:
        try:
            await _describe(here, told)
            await _try(here, told, here.connection)
        except Disconnected:
            await asyncio.sleep(SETTLED_SECONDS)
        else:
            return


async def _alter(here: Surroundings, told: OptionsTold) -> None:
    chance = here.chance
    broker_id = chance.choice([ALL, THIS])
    names = chance.sample(sorted(VALUES), chance.choice([1, 1, 2]))
    changes = {name: None if chance.random() < 0.3 else chance.choice(VALUES[name]) for name in names}
    configs = [
        AlterableConfig(name=name, config_operation=DELETE if value is None else SET, value=value)
        for name, value in changes.items()
    ]
    resource = AlterConfigsResource(resource_type=BROKER, resource_name=broker_id, configs=configs)
    told.asks(broker_id, changes)
    altering = here.connection.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    outcomes: list[Any] = [*await asyncio.gather(altering, _look_meanwhile(here, told), return_exceptions=True)]
    told.asks(broker_id, changes)  # what was seen meanwhile may have been before it
    answer = outcomes[0]
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    if answer.responses[0].error_code == ErrorCode.NONE:
        told.altered(broker_id, changes)
        here.history.options_altered += 1
    else:
        here.history.refusals.append(f"refused: options {changes}: {answer.responses[0].error_message}")


async def _describe(here: Surroundings, told: OptionsTold) -> None:
    resource = DescribeConfigsResource(resource_type=BROKER, resource_name=THIS, configuration_keys=sorted(VALUES))
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    answer = await here.connection.ask(request, 4)
    here.history.refusals += told.read(_options_in(answer), "described are")


def _options_in(answer: Any) -> Options:
    return frozenset(
        (SOURCES[each.source], each.name, each.value)
        for config in answer.results[0].configs
        for each in config.synonyms
        if each.source in SOURCES
    )


async def _look_meanwhile(here: Surroundings, told: OptionsTold) -> None:
    """Look on another connection while the answer is on its way: what is seen there must stay, too."""
    if here.chance.random() < MEANWHILE:
        await asyncio.sleep(here.chance.uniform(*MEANWHILE_SECONDS))
        with suppress(Disconnected):
            await _try(here, told, here.other_connection)


async def _try(here: Surroundings, told: OptionsTold, connection: Connection) -> None:
    topic = CreatableTopic(name="replicated", num_partitions=1, replication_factor=3)
    answer = await connection.ask(CreateTopicsRequest(topics=[topic], validate_only=True), 5)
    code = answer.topics[0].error_code
    if code in (ErrorCode.NONE, ErrorCode.INVALID_REPLICATION_FACTOR):
        found = "true" if code == ErrorCode.NONE else "false"
        here.history.refusals += told.in_force(THIS, ANY_FACTOR, "false", found)
    else:
        here.history.refusals.append(f"refused: a topic that is only tried: {ErrorCode(code).name}")
