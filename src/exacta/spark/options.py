"""The options of `format("exacta")`: named and spelt as Spark's own Kafka connector has them.

Owns names, defaults and the sentences for what is missing, wrong or unknown. An option that would be ignored is
refused: a job that sets one expects its effect. Spark hands names over in lower case or as written; they are compared
without case.

Our own options, which the Kafka connector has not: `transaction.marker.topic` (the topic whose first partition
carries the replay markers, where rows name their topics), `replay.deterministic` (a replayed batch puts every row
into the same task again), `checkpoint.moved.from` (where this checkpoint was before it was moved on purpose),
`kafka.delivery.timeout.ms`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any, TypeVar

from exacta.client.producer_settings import COMPRESSION
from exacta.client.routing import BadBootstrap, parse_bootstrap


class OptionError(ValueError):
    """An option is missing, wrong or unknown; the message is one sentence for the user."""


EARLIEST = "earliest"
LATEST = "latest"

#: Per topic and partition an offset; -2 is the earliest, -1 the latest.
Offsets = dict[str, dict[int, int]]


@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """What a reader was asked for."""

    bootstrap: str
    topics: tuple[str, ...]
    assigned: Mapping[str, tuple[int, ...]] | None = None
    starting_offsets: str | Offsets = LATEST
    max_offsets_per_trigger: int | None = None
    fail_on_data_loss: bool = True
    include_headers: bool = False
    committed_only: bool = True
    fetch_bytes: int = 4 * 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class SinkOptions:
    """What a writer was asked for."""

    bootstrap: str
    topic: str | None = None
    checkpoint_location: str | None = None
    marker_topic: str | None = None
    transaction_timeout_ms: int = 900_000
    delivery_timeout_ms: int = 120_000
    batch_size_bytes: int = 256 * 1024
    compression: str = "none"
    replay_deterministic: bool = False
    checkpoint_moved_from: str | None = None


def _text(name: str, value: str) -> str:
    if not value.strip():
        raise OptionError(f"option '{name}' is empty")
    return value.strip()


def _flag(name: str, value: str) -> bool:
    if value.strip().lower() not in ("true", "false"):
        raise OptionError(f"option '{name}' must be true or false, not '{value}'")
    return value.strip().lower() == "true"


def _positive(name: str, value: str) -> int:
    if not value.strip().isdigit() or int(value) == 0:
        raise OptionError(f"option '{name}' must be a positive whole number, not '{value}'")
    return int(value)


def _bootstrap(name: str, value: str) -> str:
    try:
        parse_bootstrap(value)
    except BadBootstrap as error:
        raise OptionError(f"option '{name}': {error}") from error
    return value


def _topics(name: str, value: str) -> tuple[str, ...]:
    topics = tuple(dict.fromkeys(part.strip() for part in value.split(",") if part.strip()))
    if not topics:
        raise OptionError(f"option '{name}' names no topic")
    return topics


def _one_of(*allowed: str) -> Callable[[str, str], str]:
    def parse(name: str, value: str) -> str:
        if value.strip().lower() not in allowed:
            raise OptionError(f"option '{name}' must be one of {', '.join(allowed)}, not '{value}'")
        return value.strip().lower()

    return parse


def _committed_only(name: str, value: str) -> bool:
    return _one_of("read_committed", "read_uncommitted")(name, value) == "read_committed"


def _json_object(name: str, value: str) -> dict[str, Any]:
    try:
        found = json.loads(value)
    except ValueError as error:
        raise OptionError(f"option '{name}' is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise OptionError(f"option '{name}' must be a JSON object of topics, not '{value}'")
    return found


def _assign(name: str, value: str) -> dict[str, tuple[int, ...]]:
    found = _json_object(name, value)
    for topic, partitions in found.items():
        if not isinstance(partitions, list) or not all(type(p) is int and p >= 0 for p in partitions):
            raise OptionError(f"option '{name}' must list whole numbers for topic '{topic}', not {partitions}")
    return {topic: tuple(sorted(set(partitions))) for topic, partitions in found.items()}


def _starting_offsets(name: str, value: str) -> str | Offsets:
    if value.strip().lower() in (EARLIEST, LATEST):
        return value.strip().lower()
    try:
        found = {
            topic: {int(partition): int(offset) for partition, offset in offsets.items()}
            for topic, offsets in _json_object(name, value).items()
        }
    except (AttributeError, TypeError, ValueError) as error:
        raise OptionError(
            f"option '{name}' must be earliest, latest or JSON like {{\"topic\": {{\"0\": 42}}}}, not '{value}'"
        ) from error
    if any(offset < -2 for offsets in found.values() for offset in offsets.values()):
        raise OptionError(f"option '{name}' holds an offset below -2 (-2 is the earliest, -1 the latest)")
    return found


def _refuse_unless(*allowed: str) -> Callable[[str, str], None]:
    def parse(name: str, value: str) -> None:
        if value.strip().lower() not in allowed:
            raise OptionError(f"option '{name}' can only be {' or '.join(allowed)}: exactly once depends on it")

    return parse


_Parser = Callable[[str, str], Any]

# Name in the connector's spelling -> (field, parser). No field: checked only.
_SOURCE: dict[str, tuple[str | None, _Parser]] = {
    "kafka.bootstrap.servers": ("bootstrap", _bootstrap),
    "subscribe": ("topics", _topics),
    "assign": ("assigned", _assign),
    "startingOffsets": ("starting_offsets", _starting_offsets),
    "maxOffsetsPerTrigger": ("max_offsets_per_trigger", _positive),
    "failOnDataLoss": ("fail_on_data_loss", _flag),
    "includeHeaders": ("include_headers", _flag),
    "kafka.isolation.level": ("committed_only", _committed_only),
    "kafka.max.partition.fetch.bytes": ("fetch_bytes", _positive),
}

_SINK: dict[str, tuple[str | None, _Parser]] = {
    "kafka.bootstrap.servers": ("bootstrap", _bootstrap),
    "topic": ("topic", _text),
    "checkpointLocation": ("checkpoint_location", _text),
    "transaction.marker.topic": ("marker_topic", _text),
    "replay.deterministic": ("replay_deterministic", _flag),
    "checkpoint.moved.from": ("checkpoint_moved_from", _text),
    "kafka.transaction.timeout.ms": ("transaction_timeout_ms", _positive),
    "kafka.delivery.timeout.ms": ("delivery_timeout_ms", _positive),
    "kafka.batch.size": ("batch_size_bytes", _positive),
    "kafka.compression.type": ("compression", _one_of(*COMPRESSION)),
    "kafka.acks": (None, _refuse_unless("all", "-1")),
    "kafka.enable.idempotence": (None, _refuse_unless("true")),
    "includeHeaders": (None, _flag),  # the sink takes a headers column wherever there is one
}

# What Spark adds or keeps for itself.
_SPARKS_OWN = frozenset({"checkpointlocation", "queryname", "path", "outputmode"})


def source_options(options: Mapping[str, str]) -> SourceOptions:
    """Return the options of a reader; raises `OptionError`."""
    values = _parse(options, _SOURCE, "reading")
    if values.get("bootstrap") is None:
        raise OptionError("reading needs option 'kafka.bootstrap.servers' (host:port,host:port)")
    assigned = values.get("assigned")
    if (values.get("topics") is None) == (assigned is None):
        raise OptionError("reading needs exactly one of the options 'subscribe' (topics) and 'assign' (partitions)")
    if assigned is not None:
        values["topics"] = tuple(assigned)
    return _made(SourceOptions, values)


def sink_options(options: Mapping[str, str]) -> SinkOptions:
    """Return the options of a writer; raises `OptionError`."""
    values = _parse(options, _SINK, "writing")
    if values.get("bootstrap") is None:
        raise OptionError("writing needs option 'kafka.bootstrap.servers' (host:port,host:port)")
    return _made(SinkOptions, values)


_Made = TypeVar("_Made", SourceOptions, SinkOptions)


def _made(kind: type[_Made], values: Mapping[str, Any]) -> _Made:
    return kind(**{field.name: values[field.name] for field in fields(kind) if field.name in values})


def _parse(options: Mapping[str, str], table: Mapping[str, tuple[str | None, _Parser]], doing: str) -> dict[str, Any]:
    known = {name.lower(): name for name in table}
    values: dict[str, Any] = {}
    for given, value in options.items():
        name = known.get(given.lower())
        if name is None:
            if given.lower() in _SPARKS_OWN:
                continue
            close = get_close_matches(given.lower(), known, n=1)
            hint = f"; did you mean '{known[close[0]]}'?" if close else ""
            raise OptionError(f"format \"exacta\" does not know option '{given}' for {doing}{hint}")
        field, parse = table[name]
        parsed = parse(name, value)
        if field is not None:
            values[field] = parsed
    return values
