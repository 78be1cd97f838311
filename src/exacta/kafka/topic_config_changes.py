"""Changes of a topic's own configurations: they are set, deleted, appended to, subtracted from (KIP-339).

Owns the changes that may be asked for and the order in which they are checked, which is Kafka's; `config/topic.py`
checks the values themselves. The new configurations count as a whole: one that is wrong leaves all as they are.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from exacta.config.dynamic import DynamicConfiguration
from exacta.config.topic import TOPIC_CONFIGS, ConfigType, UnfitValue, as_list, checked, require_consistent
from exacta.config.topic_values import values_of
from exacta.protocol.kafka.errors import ErrorCode


class ConfigOperation(IntEnum):
    """An operation on a value, in Kafka's numbers."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Change(NamedTuple):
    """One configuration's change, as a request has it: `operation` may be no number of an `ConfigOperation`."""

    name: str
    operation: int
    value: str | None


class ChangeRefused(Exception):
    """The changes cannot be made; `code` and message are meant for the client."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


def require_well_formed(changes: Sequence[Change]) -> None:
    """Refuse what makes no sense whatever it is to change. Raises ChangeRefused."""
    names = [change.name for change in changes]
    if len(set(names)) < len(names):
        raise ChangeRefused(ErrorCode.INVALID_REQUEST, "the request names a configuration more than once")
    for change in changes:
        if change.operation not in tuple(ConfigOperation):
            raise ChangeRefused(ErrorCode.INVALID_REQUEST, f"there is no operation {change.operation}")
        if change.value is None and change.operation != ConfigOperation.DELETE:
            raise ChangeRefused(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {change.name}")


def changed(present: Mapping[str, str], changes: Sequence[Change], broker: DynamicConfiguration) -> dict[str, str]:
    """Return a topic's own configurations after well-formed changes. Raises ChangeRefused."""
    configs = dict(present)
    try:
        for change in changes:
            if change.operation == ConfigOperation.DELETE:
                configs.pop(change.name, None)
            else:
                configs[change.name] = _value(present, change, broker)
        require_consistent(configs)
    except UnfitValue as unfit:
        raise ChangeRefused(ErrorCode.INVALID_CONFIG, str(unfit)) from unfit
    return configs


def _value(present: Mapping[str, str], change: Change, broker: DynamicConfiguration) -> str:
    assert change.value is not None
    if change.operation == ConfigOperation.SET:
        return checked(change.name, change.value)
    config = TOPIC_CONFIGS.get(change.name)
    if config is None:
        raise UnfitValue(f"Unknown topic config name: {change.name}")
    if config.type is not ConfigType.LIST:
        word = ConfigOperation(change.operation).name.lower()
        raise UnfitValue(f"{change.name} is no list, there is nothing to {word}")
    [(_, before, _), *_] = values_of(present, change.name, broker)
    elements, given = as_list(before), as_list(change.value)
    if change.operation == ConfigOperation.APPEND:
        return checked(change.name, ",".join(elements + given))
    return ",".join(each for each in elements if each not in given)
