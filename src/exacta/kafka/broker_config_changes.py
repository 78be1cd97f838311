"""Changes of the broker's options while it runs (KIP-226): which can be asked for, in Kafka's order and words.

`config/options.py` says which options are dynamic, and the core keeps what is set. What is set for one broker counts
before what is set for all, and both count before the file and the command line, also after a restart
(`config/dynamic.py`). The new options count as a whole: one that is wrong leaves all as they are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from exacta.config.dynamic import ALL_BROKERS, DynamicConfiguration, in_force, text_of
from exacta.config.errors import ConfigurationError
from exacta.config.options import is_of_security, options, parse_run_time_value, require_order
from exacta.kafka.topic_config_changes import Change, ChangeRefused, ConfigOperation
from exacta.protocol.kafka.errors import ErrorCode


def changed(present: Mapping[str, str], changes: Sequence[Change]) -> dict[str, str]:
    """Return the options that are set for a broker, or for all, after well-formed changes. Raises ChangeRefused."""
    configs = dict(present)
    for change in changes:
        if change.operation == ConfigOperation.DELETE:
            configs.pop(change.name, None)
        elif change.operation == ConfigOperation.SET:
            configs[change.name] = str(change.value)
        else:  # no option that can be changed is a list
            word = ConfigOperation(change.operation).name.lower()
            message = f"Config value {word} is not allowed for config key: {change.name}"
            raise ChangeRefused(ErrorCode.INVALID_CONFIG, message)
    given = [change.name for change in changes if change.operation == ConfigOperation.SET]
    if security := [name for name in given if is_of_security(name)]:
        message = f"who may do what is set at the start only: [{', '.join(security)}]"
        raise ChangeRefused(ErrorCode.INVALID_CONFIG, message)
    fixed = [name for name in given if name not in options() or not options()[name].dynamic]
    if fixed:
        message = f"Cannot update these configs dynamically: [{', '.join(fixed)}]"
        raise ChangeRefused(ErrorCode.INVALID_REQUEST, message)
    try:
        return configs | {name: text_of(parse_run_time_value(options()[name], configs[name])) for name in given}
    except ConfigurationError as wrong:  # Kafka's code for it, although the request is well-formed (KAFKA-13609)
        raise ChangeRefused(ErrorCode.INVALID_REQUEST, str(wrong)) from wrong


def require_possible(configs: Mapping[str, str], broker_id: str, broker: DynamicConfiguration) -> None:
    """Refuse options that do not go together with the others in force. Raises ChangeRefused.

    Another broker is taken to have been started like this one.
    """
    try:
        static = broker.static if broker_id == ALL_BROKERS else replace(broker.static, node_id=int(broker_id))
        require_order(in_force(static, broker.all_with(broker_id, configs)))
    except ConfigurationError as wrong:
        raise ChangeRefused(ErrorCode.INVALID_REQUEST, str(wrong)) from wrong
