"""The tables of commands and events are total, and nothing stands in two of them."""

from collections import Counter
from types import UnionType
from typing import TypeVar, get_args

from exacta.core import apply, commands, decide, events
from exacta.core.access import fold as access_fold
from exacta.core.access import rules as access_rules
from exacta.core.admission import ADMISSION, OnFullDisk
from exacta.core.commands import Command, Parked
from exacta.core.event import TAGS, Event
from exacta.core.event_codec import DurableEvent
from exacta.core.groups import fold as groups_fold
from exacta.core.groups import rules as groups_rules
from exacta.core.log import fold as log_fold
from exacta.core.log import rules as log_rules
from exacta.core.quotas import fold as quotas_fold
from exacta.core.quotas import rules as quotas_rules
from exacta.core.subscriptions import fold as subscriptions_fold
from exacta.core.subscriptions import rules as subscriptions_rules
from exacta.core.transactions import fold as transactions_fold
from exacta.core.transactions import rules as transactions_rules
from exacta.core.values.usage import Table

T = TypeVar("T")
BASES = {Command, Parked, Event}


def of_kind(module: object, base: type[T]) -> set[type[T]]:
    found = {each for each in vars(module).values() if isinstance(each, type) and issubclass(each, base)}
    return found - BASES


def test_every_command_is_decided_in_one_room() -> None:
    rooms = (
        log_rules.RULES,
        transactions_rules.RULES,
        groups_rules.RULES,
        subscriptions_rules.RULES,
        access_rules.RULES,
        quotas_rules.RULES,
    )
    assert max(Counter(command for room in rooms for command in room).values()) == 1
    assert decide._DECIDE.keys() == of_kind(commands, Command)


def test_every_command_has_a_row_that_says_what_a_lack_of_room_does_to_it() -> None:
    """`World.send` and the simulation look whether a command lets only those tables grow that its row names."""
    assert ADMISSION.keys() == of_kind(commands, Command)
    assert {table for row in ADMISSION.values() for table in row.tables} == {*Table}
    batches = {command for command, row in ADMISSION.items() if row.on_full_disk is OnFullDisk.BATCH}
    assert batches == {commands.AppendBatch}


def test_every_event_is_folded_in_one_room() -> None:
    rooms = (
        log_fold.FOLDS,
        transactions_fold.FOLDS,
        groups_fold.FOLDS,
        subscriptions_fold.FOLDS,
        access_fold.FOLDS,
        quotas_fold.FOLDS,
    )
    assert max(Counter(event for room in rooms for event in room).values()) == 1
    assert apply._APPLY.keys() == of_kind(events, Event)


def test_every_event_has_a_number_of_its_own() -> None:
    assert max(Counter(TAGS.values()).values()) == 1
    found = of_kind(events, Event)
    assert {event.__name__ for event in found} == TAGS.keys() - {"Event"}
    for event in found:
        assert event.__struct_config__.tag == TAGS[event.__name__]


def test_the_durable_events_are_those_that_say_so() -> None:
    assert isinstance(DurableEvent, UnionType)
    assert set(get_args(DurableEvent)) == {event for event in of_kind(events, Event) if event.durable}
