"""The levels of the broker's loggers while it runs (KIP-412): the resource BROKER_LOGGER of Kafka's configurations.

Owns the names, Kafka's words for the levels, and the changes. A change is no configuration of the log: nothing of it is
durable, and a restart begins with `--log-level`, as Apache Kafka's begins with its file. All loggers are ours, so that
a program with a broker in it keeps its own.

The level of the audit log is the operator's: a client that may change configurations could hide what it does.
"""

import logging
from collections.abc import Iterable, Sequence

from exacta.kafka.topic_config_changes import Change, ChangeRefused, ConfigOperation
from exacta.protocol.kafka.errors import ErrorCode
from exacta.security import audit

ROOT = "root"
"""Kafka's name of the logger above all others; it is ours that is above all of ours."""

_OURS = "exacta"

LEVELS = {
    "TRACE": logging.DEBUG - 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
"""Kafka's names of levels; no line of ours has the first one."""

logger = logging.getLogger("exacta.kafka")


def names() -> list[str]:
    """Return the names of all loggers that there are."""
    known: Iterable[str] = list(logging.root.manager.loggerDict)
    return [ROOT, *sorted(name for name in known if name.startswith(f"{_OURS}."))]


def level_of(name: str) -> str:
    """Return the level that holds for a logger, its own or one from above, by Kafka's name."""
    level = _logger(name).getEffectiveLevel()
    return next((word for word, number in LEVELS.items() if level <= number), "FATAL")


def change(changes: Sequence[Change], *, validate_only: bool) -> None:
    """Change the levels, all of them or none; the changes are well-formed. Raises ChangeRefused."""
    for each in changes:
        _check(each)
    if validate_only:
        return
    audit.logger.setLevel(audit.logger.getEffectiveLevel())
    for each in changes:
        level = logging.NOTSET if each.operation == ConfigOperation.DELETE else LEVELS[str(each.value)]
        _logger(each.name).setLevel(level)
        logger.info("the log of %(area)s has level %(level)s now", {"area": each.name, "level": level_of(each.name)})


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(_OURS if name == ROOT else name)


def _check(change: Change) -> None:
    """Refuse what is no change of a level, in Kafka's order and words."""
    if change.operation in (ConfigOperation.APPEND, ConfigOperation.SUBTRACT):
        operation = ConfigOperation(change.operation).name
        message = f"{operation} operation is not allowed for the BROKER_LOGGER resource"
        raise ChangeRefused(ErrorCode.INVALID_REQUEST, message)
    if change.name not in names():
        raise ChangeRefused(ErrorCode.INVALID_CONFIG, f"Logger {change.name} does not exist!")
    if change.name == audit.logger.name:
        raise ChangeRefused(ErrorCode.INVALID_CONFIG, f"The log level of {change.name} is set by log.level alone")
    if change.operation == ConfigOperation.DELETE and change.name == ROOT:
        raise ChangeRefused(ErrorCode.INVALID_REQUEST, "Removing the log level of the root logger is not allowed")
    if change.operation == ConfigOperation.SET and change.value not in LEVELS:
        message = f"Cannot set the log level of {change.name} to {change.value} as it is not a supported log level. "
        message += f"Valid log levels are {', '.join(LEVELS)}"
        raise ChangeRefused(ErrorCode.INVALID_CONFIG, message)
