"""The broker's options: names, types, defaults, ranges, what each is for. Only options that are honoured are here.

Names are Kafka's where Kafka has one. `Configuration` is the single table: an option's name is its field's name with
dots (`num_partitions` is `num.partitions`). Values come as text from `--set` and `--config`, or as Python values from
`exacta.Broker`; whatever is wrong with one is a `ConfigurationError` of one line.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

from msgspec import Meta, Struct

from exacta.core.ids import NO_TIMEOUT_MS, TransactionVersion
from exacta.core.state.limits import Limits
from exacta.spelling import did_you_mean

_INT_MAX = 2**31 - 1
_LONG_MAX = 2**63 - 1


class ConfigurationError(Exception):
    """An option that does not exist, or a value that it cannot have; the message is one line for the user."""


class Configuration(Struct, frozen=True, kw_only=True):
    """Every option with its default."""

    num_partitions: Annotated[
        int,
        Meta(
            ge=1,
            le=Limits().max_partitions_per_topic,
            description="Partitions of a topic whose creator does not say how many.",
        ),
    ] = 1
    auto_create_topics_enable: Annotated[
        bool, Meta(description="Create a topic when a client that may do so asks for it.")
    ] = True
    message_max_bytes: Annotated[
        int,
        Meta(ge=1, le=_INT_MAX, description="Largest record batch where a topic's max.message.bytes is not set."),
    ] = 1_048_588
    fetch_max_bytes: Annotated[
        int, Meta(ge=1024, le=_INT_MAX, description="Most bytes of records in one fetch response.")
    ] = 57_671_680
    max_incremental_fetch_session_cache_slots: Annotated[
        int, Meta(ge=0, le=_INT_MAX, description="Most fetch sessions (KIP-227); readers without one go on in full.")
    ] = 1_000
    list_offsets_visible_end: Annotated[
        bool,
        Meta(
            description="Tell readers of committed records the end of the last one that they get, not the last stable "
            "offset: for those that count records, and wait for ever before a marker."
        ),
    ] = False
    socket_request_max_bytes: Annotated[
        int, Meta(ge=1024, le=_INT_MAX, description="Largest request; a larger one is refused unread.")
    ] = 104_857_600
    queued_max_request_bytes: Annotated[
        int,
        Meta(
            ge=1,
            le=_LONG_MAX,
            description="Most bytes of requests of all connections that are not answered yet; beyond it, who holds "
            "much is read no more for a while.",
        ),
    ] = 256 << 20
    queued_max_request_bytes_per_connection: Annotated[
        int,
        Meta(
            ge=1,
            le=_LONG_MAX,
            description="Most bytes of requests of one connection at work, and of answers that wait for their place; "
            "one request may be larger.",
        ),
    ] = 16 << 20
    queued_max_response_bytes: Annotated[
        int,
        Meta(
            ge=1,
            le=_LONG_MAX,
            description="Most bytes of answers that clients have not taken yet; beyond it, fetches wait, and whatever "
            "else has long answers.",
        ),
    ] = 256 << 20
    connections_max_stall_ms: Annotated[
        int,
        Meta(
            ge=1,
            le=_INT_MAX,
            description="When a connection is closed whose request does not come on, or whose answers are not taken, "
            "while others wait for the memory.",
        ),
    ] = 10_000
    max_connections: Annotated[
        int,
        Meta(ge=0, le=_INT_MAX, description="Most connections; never more than half of the files that may be open."),
    ] = _INT_MAX
    max_connections_per_ip: Annotated[
        int, Meta(ge=0, le=_INT_MAX, description="Most connections from one address; a further one is closed at once.")
    ] = _INT_MAX
    connections_max_idle_ms: Annotated[
        int, Meta(ge=-1, le=_LONG_MAX, description="When a connection on which nothing happens is closed; -1: never.")
    ] = 600_000
    max_in_flight_requests_per_connection: Annotated[
        int, Meta(ge=1, le=_INT_MAX, description="Requests of one connection at work; further ones wait to be read.")
    ] = 512
    max_partitions: Annotated[
        int, Meta(ge=1, le=_INT_MAX, description="Most partitions of all topics; creating more is refused.")
    ] = Limits().max_partitions
    max_groups: Annotated[
        int, Meta(ge=1, le=_INT_MAX, description="Most groups, and most with offsets; a further one is refused.")
    ] = Limits().max_groups
    max_transactional_ids: Annotated[
        int, Meta(ge=1, le=_INT_MAX, description="Most transactional ids; a further one is refused.")
    ] = Limits().max_transactional_ids
    max_producers_per_partition: Annotated[
        int,
        Meta(
            ge=1,
            le=_INT_MAX,
            description="Most producers that a partition remembers; a further one takes the place of the one that has "
            "written least recently and has no transaction open.",
        ),
    ] = Limits().max_producers_per_partition
    log_segment_bytes: Annotated[
        int,
        Meta(ge=1 << 20, le=_INT_MAX, description="Size at which one file of the journal ends and the next begins."),
    ] = 128 << 20
    log_retention_ms: Annotated[
        int,
        Meta(
            ge=-1,
            le=_LONG_MAX,
            description="How long records are kept where a topic's retention.ms is not set; -1: for ever.",
        ),
    ] = 604_800_000
    log_retention_bytes: Annotated[
        int,
        Meta(
            ge=-1,
            le=_LONG_MAX,
            description="Bytes of a partition that are kept at least where its topic's retention.bytes is not set; "
            "-1: all.",
        ),
    ] = -1
    log_retention_check_interval_ms: Annotated[
        int, Meta(ge=1, le=_LONG_MAX, description="How often records are looked for that are kept no longer.")
    ] = 300_000
    log_cleaner_backoff_ms: Annotated[
        int, Meta(ge=1, le=_LONG_MAX, description="How long the cleaner waits before it looks again for space to free.")
    ] = 15_000
    transaction_version: Annotated[
        int,
        Meta(
            ge=int(TransactionVersion.V1),
            le=int(TransactionVersion.V2),
            description="Transaction protocol that clients are told to speak (the feature of this name, KIP-890); "
            "those that know only version 1 go on with that.",
        ),
    ] = int(TransactionVersion.V2)
    transaction_max_timeout_ms: Annotated[
        int, Meta(ge=1, le=NO_TIMEOUT_MS - 1, description="Longest transaction time-out that a producer may ask for.")
    ] = 900_000
    transaction_two_phase_commit_enable: Annotated[
        bool,
        Meta(
            description="Whether producers may take part in two-phase commits: their transactions have no time-out and "
            "can be taken over by their successors (KIP-939).",
        ),
    ] = False
    transaction_sync_every_write: Annotated[
        bool,
        Meta(
            description="Whether writes into open transactions are synced before they are acknowledged. If not, the "
            "transactions that are open when the machine stops are aborted; two-phase commits are always synced.",
        ),
    ] = False
    transactional_id_expiration_ms: Annotated[
        int, Meta(ge=1, le=_LONG_MAX, description="How long an idle transactional id is remembered.")
    ] = 604_800_000
    transaction_remove_expired_transaction_cleanup_interval_ms: Annotated[
        int, Meta(ge=1, le=_INT_MAX, description="How often transactional ids are looked for that are to be forgotten.")
    ] = 3_600_000
    producer_id_expiration_ms: Annotated[
        int, Meta(ge=1, le=_LONG_MAX, description="How long a partition remembers an idle producer, and its sequences.")
    ] = 86_400_000
    producer_id_expiration_check_interval_ms: Annotated[
        int, Meta(ge=1, le=_INT_MAX, description="How often producers are looked for that are to be forgotten.")
    ] = 600_000
    group_initial_rebalance_delay_ms: Annotated[
        int, Meta(ge=0, le=_INT_MAX, description="How long an empty group waits for more members before it begins.")
    ] = 0
    group_min_session_timeout_ms: Annotated[
        int, Meta(ge=1, le=_INT_MAX, description="Shortest session time-out that a group's member may ask for.")
    ] = 6_000
    group_max_session_timeout_ms: Annotated[
        int, Meta(ge=1, le=_INT_MAX, description="Longest session time-out that a group's member may ask for.")
    ] = 1_800_000
    group_max_size: Annotated[int, Meta(ge=1, le=_INT_MAX, description="Most members of one group.")] = _INT_MAX
    group_consumer_session_timeout_ms: Annotated[
        int,
        Meta(
            ge=1,
            le=_INT_MAX,
            description="How long a group of the consumer protocol (KIP-848) keeps a member that is not heard of.",
        ),
    ] = 45_000
    group_consumer_heartbeat_interval_ms: Annotated[
        int, Meta(ge=1, le=_INT_MAX, description="How often members of such a group are told to send a heartbeat.")
    ] = 5_000
    group_consumer_max_size: Annotated[
        int, Meta(ge=1, le=_INT_MAX, description="Most members of one group of the consumer protocol.")
    ] = _INT_MAX
    group_consumer_assignors: Annotated[
        str,
        Meta(
            pattern=r"(uniform|range)(,(?!\1)(uniform|range))?",
            description="Which assignors such a group may use: uniform, range, or both, separated by a comma. "
            "The first is for groups whose members ask for none.",
        ),
    ] = "uniform,range"
    offset_metadata_max_bytes: Annotated[
        int, Meta(ge=0, le=_INT_MAX, description="Most bytes of metadata with a committed offset.")
    ] = 4096
    node_id: Annotated[int, Meta(ge=0, le=_INT_MAX, description="The id by which clients know this broker.")] = 0

    def limits(self) -> Limits:
        """Return what the core must know."""
        return Limits(
            transaction_max_timeout_ms=self.transaction_max_timeout_ms,
            transactional_id_expiration_ms=self.transactional_id_expiration_ms,
            transactional_id_expiry_interval_ms=self.transaction_remove_expired_transaction_cleanup_interval_ms,
            producer_id_expiration_ms=self.producer_id_expiration_ms,
            producer_id_expiry_interval_ms=self.producer_id_expiration_check_interval_ms,
            offset_metadata_max_bytes=self.offset_metadata_max_bytes,
            group_min_session_timeout_ms=self.group_min_session_timeout_ms,
            group_max_session_timeout_ms=self.group_max_session_timeout_ms,
            group_max_size=self.group_max_size,
            group_initial_rebalance_delay_ms=self.group_initial_rebalance_delay_ms,
            max_partitions=self.max_partitions,
            max_groups=self.max_groups,
            max_transactional_ids=self.max_transactional_ids,
            max_producers_per_partition=self.max_producers_per_partition,
            group_consumer_session_timeout_ms=self.group_consumer_session_timeout_ms,
            group_consumer_max_size=self.group_consumer_max_size,
            group_consumer_assignors=tuple(self.group_consumer_assignors.split(",")),
        )


class Option(Struct, frozen=True):
    """One option. `lowest` and `highest` are inclusive and None but for a number; a text matches `pattern`."""

    name: str
    field: str
    type: type
    default: int | bool | str
    lowest: int | None
    highest: int | None
    description: str
    pattern: str = ""


@cache
def options() -> dict[str, Option]:
    """Return all options by name."""
    defaults = Configuration()
    found = {}
    for field, hint in get_type_hints(Configuration, include_extras=True).items():
        option_type, meta = get_args(hint)
        name = field.replace("_", ".")
        found[name] = Option(
            name,
            field,
            option_type,
            getattr(defaults, field),
            meta.ge,
            meta.le,
            meta.description or "",
            meta.pattern or "",
        )
    return found


def configure(settings: Mapping[str, Any]) -> Configuration:
    """Return the configuration with these settings; names may have dots or underscores.

    Raises ConfigurationError.
    """
    values: dict[str, Any] = {}
    for given, value in settings.items():
        option = _find(given)
        values[option.field] = _parse(option, value)
    configuration = Configuration(**values)
    _require_order(configuration, "group.min.session.timeout.ms", "group.max.session.timeout.ms")
    _require_order(configuration, "group.consumer.heartbeat.interval.ms", "group.consumer.session.timeout.ms")
    _require_order(configuration, "message.max.bytes", "socket.request.max.bytes")
    return configuration


_ELSEWHERE = {
    "listeners": "--listen HOST:PORT",
    "host.name": "--listen HOST:PORT",
    "port": "--listen HOST:PORT",
    "advertised.listeners": "--advertise HOST:PORT",
    "advertised.host.name": "--advertise HOST:PORT",
    "advertised.port": "--advertise HOST:PORT",
    "log.dirs": "--data DIR",
    "log.dir": "--data DIR",
}
"""What Kafka has as options of its configuration and `exacta serve` on its command line."""


def _find(given: str) -> Option:
    name = given.replace("_", ".")
    option = options().get(name)
    if option is None:
        if name in _ELSEWHERE:
            raise ConfigurationError(f"unknown option {given}: give {_ELSEWHERE[name]} to `exacta serve`")
        meant = did_you_mean(name, options())
        raise ConfigurationError(f"unknown option {given}" + (f"; {meant}" if meant else ""))
    return option


_TRUTHS = {"true": True, "false": False}


def _parse(option: Option, value: Any) -> int | bool | str:
    if option.type is str:
        text = "".join(str(value).split())
        if not re.fullmatch(option.pattern, text):
            raise ConfigurationError(f"{option.name} cannot be {value!r}: it is like {option.default}")
        return text
    if option.type is bool:
        if isinstance(value, bool):
            return value
        truth = _TRUTHS.get(str(value).strip().lower())
        if truth is None:
            raise ConfigurationError(f"{option.name} must be true or false, not {value!r}")
        return truth
    assert option.lowest is not None
    assert option.highest is not None
    try:
        if isinstance(value, bool | float):
            raise ValueError
        number = int(value)
    except (TypeError, ValueError):
        raise ConfigurationError(f"{option.name} must be a whole number, not {value!r}") from None
    if not option.lowest <= number <= option.highest:
        raise ConfigurationError(f"{option.name} must be between {option.lowest} and {option.highest}, not {number}")
    return number


def _require_order(configuration: Configuration, low: str, high: str) -> None:
    lower, higher = (getattr(configuration, options()[name].field) for name in (low, high))
    if lower > higher:
        raise ConfigurationError(f"{low} ({lower}) must not be above {high} ({higher})")


def parse_setting(text: str) -> tuple[str, str]:
    """Split `key=value`. Raises ConfigurationError."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigurationError(f"expected key=value, not {text!r}")
    return key.strip(), value.strip()


def read_properties(path: Path) -> dict[str, str]:
    """Read a file of `key=value` lines; blank lines and lines that begin with # or ! say nothing.

    Raises ConfigurationError, with file and line.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigurationError(f"cannot read {path}: {reason}") from error
    settings = {}
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if not stripped or stripped[0] in "#!":
            continue
        try:
            key, value = parse_setting(stripped)
            option = _find(key)
            _parse(option, value)
            settings[option.name] = value
        except ConfigurationError as error:
            raise ConfigurationError(f"{path}:{number}: {error}") from error
    return settings
