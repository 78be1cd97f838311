"""BROKER_LOGGER over the wire (KIP-412): the levels of the log's areas are read and changed while the broker runs."""

import logging
from collections.abc import Iterator

import pytest

from exacta.kafka.loggers import LEVELS, level_of
from exacta.protocol.kafka.errors import ErrorCode
from tests.kafka.test_configs import APPEND, DELETE, LOGGER, METRICS, SET, SUBTRACT, changes, describe, replaced
from tests.kafka.test_topics import create
from tests.kafka.wire import Wire

GROUPS, TOPICS = "exacta.groups", "exacta.topics"
SOURCE = 6


@pytest.fixture(autouse=True)
def _levels() -> Iterator[None]:
    """Let the levels be afterwards what they were."""
    before = {name: logging.getLogger(name).level for name in ("exacta", "exacta.audit", GROUPS, TOPICS)}
    yield
    for name, level in before.items():
        logging.getLogger(name).setLevel(level)


def levels(wire: Wire, *keys: str) -> dict[str, tuple[str, int]]:
    found = describe(wire, LOGGER, "0", keys=list(keys) or None)
    assert found.error_code == ErrorCode.NONE
    assert not any(each.read_only or each.is_sensitive or each.synonyms for each in found.configs)
    return {each.name: (each.value, each.config_source) for each in found.configs}


def test_all_loggers_of_the_broker_are_there_and_no_others(wire: Wire) -> None:
    found = levels(wire)
    assert {"root", "exacta.kafka", TOPICS, "exacta.transactions", GROUPS, "exacta.front"} <= set(found)
    assert all(name == "root" or name.startswith("exacta.") for name in found)
    assert {level for level, _ in found.values()} <= set(LEVELS)
    assert {source for _, source in found.values()} == {SOURCE}


def test_a_level_is_set_and_taken_away_again(wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    assert changes(wire, ("root", SET, "WARN"), kind=LOGGER, name="0").error_code == ErrorCode.NONE
    create(wire, name="quiet")
    assert changes(wire, (TOPICS, SET, "INFO"), kind=LOGGER, name="0").error_code == ErrorCode.NONE
    assert levels(wire, TOPICS, GROUPS) == {TOPICS: ("INFO", SOURCE), GROUPS: ("WARN", SOURCE)}
    create(wire, name="told")
    lines = [each.getMessage() for each in caplog.records if each.name == TOPICS]
    assert [line.split(",")[0] for line in lines] == ["topic 'told' was made"]
    assert changes(wire, (TOPICS, DELETE, None), kind=LOGGER, name="0").error_code == ErrorCode.NONE
    assert levels(wire, TOPICS) == {TOPICS: ("WARN", SOURCE)}


def test_the_level_above_all_others_does_not_silence_the_audit_log(wire: Wire) -> None:
    before = levels(wire, "exacta.audit")
    assert changes(wire, ("root", SET, "FATAL"), kind=LOGGER, name="0").error_code == ErrorCode.NONE
    assert levels(wire, "exacta.audit", TOPICS) == {**before, TOPICS: ("FATAL", SOURCE)}


def test_a_request_that_only_asks_changes_nothing(wire: Wire) -> None:
    before = levels(wire, TOPICS)
    asked = changes(wire, (TOPICS, SET, "FATAL"), kind=LOGGER, name="0", validate_only=True)
    assert asked.error_code == ErrorCode.NONE
    assert levels(wire, TOPICS) == before


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        ((TOPICS, APPEND, "INFO"), ErrorCode.INVALID_REQUEST, "APPEND operation is not allowed"),
        ((TOPICS, SUBTRACT, "INFO"), ErrorCode.INVALID_REQUEST, "SUBTRACT operation is not allowed"),
        (("exacta.nowhere", SET, "INFO"), ErrorCode.INVALID_CONFIG, "Logger exacta.nowhere does not exist!"),
        (("asyncio", SET, "INFO"), ErrorCode.INVALID_CONFIG, "Logger asyncio does not exist!"),
        (("exacta.nowhere", DELETE, None), ErrorCode.INVALID_CONFIG, "does not exist!"),
        (("exacta.audit", SET, "FATAL"), ErrorCode.INVALID_CONFIG, "set by log.level alone"),
        (("exacta.audit", DELETE, None), ErrorCode.INVALID_CONFIG, "set by log.level alone"),
        (("root", DELETE, None), ErrorCode.INVALID_REQUEST, "Removing the log level of the root logger"),
        ((TOPICS, SET, "LOUD"), ErrorCode.INVALID_CONFIG, "Valid log levels are TRACE, DEBUG, INFO, WARN, ERROR"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(
    wire: Wire, change: tuple[str, int, str | None], code: ErrorCode, words: str
) -> None:
    before = level_of(GROUPS)
    other = "ERROR" if before != "ERROR" else "WARN"
    answer = changes(wire, (GROUPS, SET, other), change, kind=LOGGER, name="0")
    assert (answer.error_code, words in answer.error_message) == (code, True)
    assert level_of(GROUPS) == before


def test_another_broker_and_the_older_request_are_refused(wire: Wire) -> None:
    assert describe(wire, LOGGER, "7").error_code == ErrorCode.INVALID_REQUEST
    assert describe(wire, LOGGER, "").error_code == ErrorCode.INVALID_REQUEST
    assert changes(wire, (TOPICS, SET, "INFO"), kind=LOGGER, name="7").error_code == ErrorCode.INVALID_REQUEST
    assert replaced(wire, {TOPICS: "INFO"}, kind=LOGGER, name="0").error_code == ErrorCode.INVALID_REQUEST
    assert changes(wire, ("x", SET, "y"), kind=METRICS, name="0").error_code == ErrorCode.INVALID_REQUEST


def test_a_refused_command_is_told_to_who_wants_to_know_everything(
    wire: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "exacta.rejections"):
        create(wire)
        create(wire)
    [line] = [each.getMessage() for each in caplog.records if each.name == "exacta.rejections"]
    assert line.startswith("CreateTopic was refused, topic_already_exists: CreateTopic(topic='t'")
