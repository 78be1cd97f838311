"""The page of what each of several brokers does, made from the handlers of both protocols and from the options."""

from collections.abc import Iterable

from exacta.config.options import options
from exacta.config.scope import OF_EACH_BROKER
from exacta.kafka.config_source import SCOPES
from exacta.kafka.handlers import HANDLERS as OF_KAFKA
from exacta.protocol.pulsar.messages_pb2 import BaseCommand
from exacta.pulsar.handlers import HANDLERS as OF_PULSAR
from website.pages.markdown import table

_HEAD = """# What each of several brokers does

Where several brokers share a log, one of them leads it: it decides everything, and coordinates all groups and
transactions. The others follow. They keep the whole log as far as they have followed it, and decide nothing. A client
may begin at any broker. Metadata, FindCoordinator and look-ups name the leader at each of them, and all brokers that
live. [Decision 0074](../decisions/0074-a-follower-answers-what-needs-no-decision.md) has the reasons."""

_KAFKA = """## Requests of Kafka clients at a follower

A client that is refused so asks for the leader again, and comes to it. What Apache Kafka would send on to its
controller is not sent on: clients that ask any broker find the leader after one attempt or two."""

_PULSAR = """## Commands of Pulsar clients at a follower"""

_SETTINGS = """## What can be set while brokers run

The leader takes all of this but the levels of loggers. Apache Kafka's tools ask the broker that they name for its own
options, and a follower refuses them. `exacta config set` asks the leader; or set the option for all brokers."""

_OPTIONS = """## Options

Quotas are counted by each broker for its own clients, and so are connections and memory. The limits of the log's tables
are those of the leader. Give all brokers the same values of the options of the second row, since each may lead. Options
that say who may do what stand in the first row, and must be the same everywhere as well."""


def page() -> str:
    """Return the page."""
    kafka = [(handler.at_follower.does, handler.name) for _, handler in sorted(OF_KAFKA.items())]
    pulsar = [
        (handler.at_follower.does, BaseCommand.Type.Name(BaseCommand.Type.ValueType(number)))
        for number, handler in sorted(OF_PULSAR.items())
    ]
    names = sorted(options())
    of_each = [f"`{name}`" for name in names if name in OF_EACH_BROKER]
    of_leader = [f"`{name}`" for name in names if name not in OF_EACH_BROKER]
    parts = [
        _HEAD,
        _KAFKA,
        table(("A follower", "Requests"), _grouped(kafka)),
        _PULSAR,
        table(("A follower", "Commands"), _grouped(pulsar)),
        _SETTINGS,
        table(("Settings of", "Count for"), SCOPES.values()),
        _OPTIONS,
        table(
            ("The value that counts", "Options"),
            [("each broker's, for itself", ", ".join(of_each)), ("the leader's, for all", ", ".join(of_leader))],
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _grouped(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return each treatment once, with the names of what is treated so."""
    found: dict[str, list[str]] = {}
    for does, name in pairs:
        found.setdefault(does, []).append(name)
    return [(does, ", ".join(names)) for does, names in found.items()]
