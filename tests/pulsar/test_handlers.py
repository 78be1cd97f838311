"""The commands as a whole: each is served, or no client's; each handler says what it needs."""

import importlib
import pkgutil
import re

import pytest

from exacta.protocol.pulsar.messages_pb2 import BaseCommand, ServerError
from exacta.pulsar import handlers
from exacta.pulsar.handlers import HANDLERS
from exacta.pulsar.needs import Need

BROKERS_ONLY = {
    "CONNECTED",
    "SEND_RECEIPT",
    "SEND_ERROR",
    "MESSAGE",
    "SUCCESS",
    "ERROR",
    "PRODUCER_SUCCESS",
    "REACHED_END_OF_TOPIC",
    "ACTIVE_CONSUMER_CHANGE",
    "AUTH_CHALLENGE",
    "TOPIC_MIGRATED",
}
"""Commands that a client never sends, beside those whose names end with RESPONSE."""

MODULES = [found.name for found in pkgutil.iter_modules(handlers.__path__)]


def test_every_command_of_a_client_is_served() -> None:
    clients = {
        name: number
        for name, number in BaseCommand.Type.items()
        if not name.endswith("_RESPONSE") and name not in BROKERS_ONLY
    }
    assert HANDLERS.keys() == {*clients.values(), BaseCommand.AUTH_RESPONSE}  # what a client answers


@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_named_by_its_command_and_declares_its_needs(name: str) -> None:
    module = importlib.import_module(f"{handlers.__name__}.{name}")
    found = re.fullmatch(r"p(\d\d)_(\w+)", name)
    assert found is not None
    number, word = found.groups()
    assert BaseCommand.Type.Name(int(number)) == word.upper()
    assert module.HANDLER.type == int(number)
    assert module.HANDLER.needs is module.NEEDS
    assert all(isinstance(need, Need) for need in module.NEEDS)


def test_every_module_has_its_place_in_the_table() -> None:
    assert len(HANDLERS) == len(MODULES)


@pytest.mark.parametrize("number", HANDLERS, ids=BaseCommand.Type.Name)
def test_every_command_can_be_refused(number: int) -> None:
    """Whoever sends one that has no request id is not answered, or by the number that it has."""
    command = getattr(BaseCommand(), BaseCommand.DESCRIPTOR.fields_by_number[number].name)
    answer = HANDLERS[number].refused(command, ServerError.UnknownError, "the reason")
    assert answer is None or "the reason" in [value for _, value in answer.ListFields()]
