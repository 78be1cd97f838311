"""Altering configurations (AlterConfigs, IncrementalAlterConfigs): resource by resource, each whole or not at all.

Topics have configurations that change (`topic_config_changes.py`). Of the broker there are some of its options
(`broker_config_changes.py`), and the levels of its loggers (`loggers.py`). Groups and clients' metrics have none: a
request that sets one there is refused, and one that sets none is granted.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from exacta.config.dynamic import ALL_BROKERS
from exacta.core.commands import Command, SetBrokerConfigs, SetTopicConfigs
from exacta.core.rejections import Rejection
from exacta.front.broker import Broker
from exacta.kafka import broker_config_changes, loggers
from exacta.kafka.at_follower import by_request
from exacta.kafka.config_source import ResourceType, configured
from exacta.kafka.context import RequestContext
from exacta.kafka.errors import CODES
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Each
from exacta.kafka.nodes import node_ids
from exacta.kafka.parts import Repeats, divided_by
from exacta.kafka.topic_config_changes import Change, ChangeRefused, ConfigOperation, changed, require_well_formed
from exacta.kafka.topic_names import LEGAL_NAMES, is_legal_name
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.ports.log import Answer
from exacta.protocol.kafka.apis import API, ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.schema import Structure


class Alteration(NamedTuple):
    """The changes that a request wants of one resource.

    `replaces`: configurations that it does not name go back to their defaults.
    """

    resource_type: int
    resource_name: str
    changes: Sequence[Change]
    replaces: bool


AT_FOLLOWER = by_request(
    "It changes the levels of its own loggers. It refuses its own options by INVALID_REQUEST: the leader takes those "
    "of every broker. It refuses all else by NOT_CONTROLLER and ends the connection, so that clients that ask any "
    "broker ask another one."
)

_Altered = tuple[ErrorCode, str | None]


def _replaced(request: Any, resource: Any) -> ResourceKind | None:
    """Find the kind of a resource whose configurations are replaced: loggers', which are not, are anybody's to name."""
    return None if resource.resource_type == ResourceType.BROKER_LOGGER else configured(request, resource)


def altering(key: ApiKey, versions: tuple[int, int], result: type[Structure], *, replaces: bool) -> Handler:
    """Return the declaration of one of the two APIs; `result` is the class of the answer to a resource."""

    def handle(broker: Broker, request: Any, context: RequestContext, reply: Reply) -> None:
        wanted = [
            Alteration(
                each.resource_type,
                each.resource_name,
                [
                    Change(config.name, ConfigOperation.SET if replaces else config.config_operation, config.value)
                    for config in each.configs
                ],
                replaces,
            )
            for each in request.resources
        ]

        def done(altered: list[_Altered]) -> None:
            responses = [
                result(
                    error_code=code,
                    error_message=message,
                    resource_type=each.resource_type,
                    resource_name=each.resource_name,
                )
                for each, (code, message) in zip(wanted, altered, strict=True)
            ]
            reply(API[key].response(responses=responses))
            if any(code is ErrorCode.NOT_CONTROLLER for code, _ in altered):
                context.connection.close()

        alter(broker, context, wanted, request.validate_only, done)

    kind = _replaced if replaces else configured
    need = Each(Operation.ALTER_CONFIGS, kind, "resources", "responses", name="resource_name")
    parts = divided_by(need, most=50, repeats=Repeats.REFUSED)
    return Handler(key, versions=versions, needs=(need,), at_follower=AT_FOLLOWER, handle=handle, parts=(parts,))


def alter(
    broker: Broker,
    context: RequestContext,
    wanted: Sequence[Alteration],
    validate_only: bool,
    done: Callable[[list[_Altered]], None],
) -> None:
    """Alter each resource for itself; `done` gets what became of each."""
    named = Counter((each.resource_type, each.resource_name) for each in wanted)
    results: list[_Altered] = []
    commands: list[Command] = []
    asked: list[int] = []
    for number, each in enumerate(wanted):
        results.append((ErrorCode.NONE, None))
        try:
            if named[each.resource_type, each.resource_name] > 1:
                raise ChangeRefused(ErrorCode.INVALID_REQUEST, "the request names this resource more than once")
            command = _command(broker, each, validate_only)
        except ChangeRefused as refused:
            results[number] = (refused.code, str(refused))
        else:
            if command is not None:
                commands.append(command)
                asked.append(number)

    def altered(answers: list[Answer]) -> None:
        for number, answer in zip(asked, answers, strict=True):
            if isinstance(answer, Rejection):
                results[number] = (CODES[answer], f"there is no topic {wanted[number].resource_name}")
        done(results)

    if commands:
        broker.submit(context, commands, altered)
    else:  # refused, maybe by what is not durable yet
        broker.when_durable(context, lambda: done(results))


def _command(broker: Broker, wanted: Alteration, validate_only: bool) -> Command | None:
    """Return what the engine is to be asked; None where there is nothing to do. Raises ChangeRefused."""
    require_well_formed(wanted.changes)
    name = wanted.resource_name
    given = [change.name for change in wanted.changes if change.operation != ConfigOperation.DELETE]
    if not broker.cluster.leads and wanted.resource_type != ResourceType.BROKER_LOGGER:
        raise _not_leading(broker, wanted)
    match wanted.resource_type:
        case ResourceType.TOPIC:
            return _topic_command(broker, wanted, validate_only)
        case ResourceType.BROKER:
            _require_known(broker, name)
            return _broker_command(broker, wanted, validate_only)
        case ResourceType.BROKER_LOGGER:
            if name != str(broker.cluster.node_id):
                raise ChangeRefused(ErrorCode.INVALID_REQUEST, f"this is broker {broker.cluster.node_id}")
            if wanted.replaces:
                raise ChangeRefused(ErrorCode.INVALID_REQUEST, "loggers are changed by IncrementalAlterConfigs only")
            loggers.change(wanted.changes, validate_only=validate_only)
        case ResourceType.GROUP | ResourceType.CLIENT_METRICS if not name:
            raise ChangeRefused(ErrorCode.INVALID_REQUEST, "a name is needed")
        case ResourceType.GROUP:
            if given:
                raise ChangeRefused(
                    ErrorCode.INVALID_CONFIG, f"groups have no configurations here, hence no {given[0]}"
                )
        case ResourceType.CLIENT_METRICS:
            if given:
                raise ChangeRefused(ErrorCode.INVALID_REQUEST, "clients' metrics are not collected here (KIP-714)")
        case unknown:
            raise ChangeRefused(ErrorCode.INVALID_REQUEST, f"Unknown resource type {unknown}")
    return None


def _not_leading(broker: Broker, wanted: Alteration) -> ChangeRefused:
    """Return why a follower refuses.

    Options of one broker are asked of that broker, again and again after NOT_CONTROLLER, until the time is up.
    """
    node_id = broker.cluster.node_id
    if (wanted.resource_type, wanted.resource_name) == (ResourceType.BROKER, str(node_id)):
        return ChangeRefused(
            ErrorCode.INVALID_REQUEST, f"broker {node_id} does not lead: the leader takes the options of every broker"
        )
    return ChangeRefused(ErrorCode.NOT_CONTROLLER, f"broker {node_id} does not lead: ask the controller")


def _require_known(broker: Broker, broker_id: str) -> None:
    """Refuse the options of a broker that does not live, but for those that it has left behind."""
    known = node_ids(broker)
    if broker_id in map(str, known) or broker_id == ALL_BROKERS or broker.options.of(broker_id):
        return
    told = f"this is broker {known[0]}" if len(known) == 1 else f"the brokers are {known}"
    raise ChangeRefused(ErrorCode.INVALID_REQUEST, told)


def _broker_command(broker: Broker, wanted: Alteration, validate_only: bool) -> SetBrokerConfigs:
    """Make the new options of those that are set, in the step in which they are submitted."""
    broker_id = wanted.resource_name
    present = {} if wanted.replaces else broker.options.of(broker_id)
    configs = broker_config_changes.changed(present, wanted.changes)
    broker_config_changes.require_possible(configs, broker_id, broker.options)
    return SetBrokerConfigs(broker_id=broker_id, configs=configs, validate_only=validate_only)


def _topic_command(broker: Broker, wanted: Alteration, validate_only: bool) -> SetTopicConfigs:
    """Make the new configurations of the present ones, in the step in which they are submitted."""
    topic = wanted.resource_name
    if not topic:
        raise ChangeRefused(ErrorCode.INVALID_REQUEST, "there are no defaults of all topics")
    if not is_legal_name(topic):
        raise ChangeRefused(ErrorCode.INVALID_TOPIC_EXCEPTION, f"no topic can be called {topic!r}: {LEGAL_NAMES}")
    present = {} if wanted.replaces else broker.topic_configs(topic) or {}
    configs = changed(present, wanted.changes, broker.options)
    return SetTopicConfigs(topic=topic, configs=configs, validate_only=validate_only)
