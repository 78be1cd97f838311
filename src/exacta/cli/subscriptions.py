"""`exacta subscriptions …`: the subscriptions of Apache Pulsar's clients, seen and moved from outside, on an Exacta."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from exacta.cli.cluster import EXIT_NO, EXIT_USAGE, CommandConfig, Servers, client_of, fail, no_topic, not_found, note
from exacta.cli.confirmation import OnlyShow, Yes, require_consent
from exacta.cli.lines import acknowledged_in_words, counted, runs_in_words, say
from exacta.cli.output import Output, OutputFormat, plain, print_json, print_records
from exacta.cli.tables import held_by, print_table
from exacta.cli.times import time_in_words, time_ms

if TYPE_CHECKING:
    from exacta.client.routing import Client
    from exacta.client.subscriptions import Reset, Target
    from exacta.readmodel.subscriptions import Details, SubscriptionDescription

_CLIENT_ID = "exacta-subscriptions"
_BOUNDS = (
    "pulsar.backlog.quota.bytes",
    "pulsar.backlog.quota.ms",
    "pulsar.backlog.quota.policy",
    "pulsar.message.ttl.ms",
)

subscriptions = typer.Typer(help="Look after the subscriptions of Apache Pulsar's clients.", no_args_is_help=True)

Topic = Annotated[
    str,
    typer.Argument(metavar="TOPIC", help="The topic, by its name in the log or by Pulsar's (persistent://…)."),
]
Name = Annotated[str, typer.Argument(metavar="SUBSCRIPTION", help="The subscription's name.")]
Partition = Annotated[
    int | None, typer.Option("--partition", metavar="N", help="Only this partition.", show_default=False)
]


@subscriptions.callback()
def root() -> None:
    """Look after the subscriptions of Apache Pulsar's clients."""


@subscriptions.command("list")
def list_all(
    topic: Annotated[
        list[str] | None, typer.Option("--topic", metavar="TOPIC", help="Only of this topic; may be repeated.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, metavar="N", help="Show at most this many.")] = 1000,
    output: Output = OutputFormat.TABLE,
    bootstrap_servers: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """Show subscriptions: their types, how many consumers are connected, their positions and their backlogs.

    The backlog is the number of messages that the subscription gets and has not acknowledged. Messages that open
    transactions have acknowledged, or that are behind open transactions, are not among them: `lag` shows these.
    """
    from exacta.client.subscriptions import describe_subscriptions

    topics = None if not topic else [_in_the_log(each)[0] for each in topic]
    with client_of(bootstrap_servers, command_config, _CLIENT_ID) as client:
        found = list(islice(describe_subscriptions(client, topics, page=min(limit, 1000) + 1), limit + 1))
        if topics and not found:
            _check_topics(client, topics)
    records = [
        {
            "partition": each.at,
            "subscription": each.name,
            "type": _type(each),
            "consumers": each.consumer_count,
            "position": each.position,
            "backlog": each.left,
        }
        for each in found[:limit]
    ]
    print_records(records, output, nothing="there are no subscriptions")
    if len(found) > limit:
        note(f"there are more than {limit} subscriptions: --limit shows more, --topic those of a topic")


@subscriptions.command()
def describe(
    topic: Topic,
    subscription: Name,
    partition: Partition = None,
    output: Output = OutputFormat.TABLE,
    bootstrap_servers: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """Show all about a subscription: what is acknowledged and pending, its consumers, and why messages wait.

    The bounds are the options that apply to the topic: its backlog quota, and the time after which messages expire.

    Exit code 1 if the topic has no such subscription.
    """
    with client_of(bootstrap_servers, command_config, _CLIENT_ID) as client:
        found = _found(client, topic, subscription, partition)
        bounds = _bounds(client, found[0].topic)
    if output is OutputFormat.JSON:
        print_json(plain(found))
        return
    for each in found:
        _describe(each, bounds)


@subscriptions.command()
def lag(
    topic: Topic,
    subscription: Name,
    partition: Partition = None,
    output: Output = OutputFormat.TABLE,
    bootstrap_servers: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """Show how far a subscription is behind, in messages.

    The backlog is what it gets and has not acknowledged. Markers, aborted and compacted records do not count. Messages
    that open transactions have acknowledged are pending: they come again if these abort. Messages behind an open
    transaction are held back, those that open transactions have written among them (uncommitted).

    Exit code 1 if the topic has no such subscription.
    """
    with client_of(bootstrap_servers, command_config, _CLIENT_ID) as client:
        found = _found(client, topic, subscription, partition)
    if output is OutputFormat.JSON:
        print_json(plain(found))
        return
    rows = []
    for each in found:
        details = _details(each)
        numbers = (each.position, each.left, each.pending, each.held_back, details.uncommitted)
        rows.append((each.at, *map(str, numbers), held_by(details.held_by)))
    sums = [sum(int(row[column]) for row in rows) for column in range(2, 6)]
    rows.append(("all", "", *map(str, sums), ""))
    columns = ("position", "backlog", "pending", "held back", "uncommitted")
    print_table(("partition", *columns, "held back by"), rows, to_the_right=columns)


@subscriptions.command()
def reset(
    topic: Topic,
    subscription: Name,
    to: Annotated[
        str,
        typer.Option("--to", metavar="WHERE", help="earliest, latest, an offset, or a time (2026-01-31T12:00:00Z)."),
    ],
    partition: Partition = None,
    dry_run: OnlyShow = False,
    yes: Yes = False,
    bootstrap_servers: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """Let a subscription go on elsewhere: what lies before is acknowledged, what lies behind comes again.

    Consumers that are connected are disconnected, and connect again. An offset is one of a partition: name the
    partition if the topic has several. Messages that open transactions have acknowledged stay pending.

    Exit code 1 if the topic has no such subscription, or no such offset.
    """
    from exacta.client.subscriptions import reset_subscription

    target = _target(to)
    with client_of(bootstrap_servers, command_config, _CLIENT_ID) as client:
        found = _found(client, topic, subscription, partition)
        if target.offset >= 0 and len(found) > 1:
            fail("the topic has several partitions: name the one of the offset with --partition", EXIT_USAGE)
        name, indexes = found[0].topic, [each.partition for each in found]
        plan = reset_subscription(client, name, subscription, indexes, target, dry_run=True)
        _show(name, plan, found)
        if dry_run:
            note("nothing was changed")
            return
        require_consent("Move it?", yes=yes)
        done = reset_subscription(client, name, subscription, indexes, target)
    _fail_where_refused(name, done, found)
    say(f"subscription {subscription} was moved")


def _target(to: str) -> "Target":
    """Return the offset or the time that is meant; end the command where it is neither."""
    from exacta.client.subscriptions import EARLIEST, LATEST, Target

    words = {"earliest": EARLIEST, "latest": LATEST}
    if to in words:
        return Target(words[to])
    if to.isascii() and to.isdigit() and len(to) < 19:
        return Target(int(to))
    at_ms = time_ms(to)
    if at_ms is None:
        fail(f"--to: '{to}' is neither earliest, latest, an offset nor a time like 2026-01-31T12:00:00Z", EXIT_USAGE)
    return Target(timestamp_ms=at_ms)


def _show(topic: str, plan: "Sequence[Reset]", found: "Sequence[SubscriptionDescription]") -> None:
    _fail_where_refused(topic, plan, found)
    for each in plan:
        closed = f", and disconnects {counted(each.closed_consumers, 'consumer')}" if each.closed_consumers else ""
        say(f"{topic}-{each.partition}: from {each.old_position} to {each.position}{closed}")


def _fail_where_refused(topic: str, results: "Iterable[Reset]", found: "Sequence[SubscriptionDescription]") -> None:
    """End the command where something stands in the way, with the offsets that there are."""
    from exacta.protocol.kafka.errors import ErrorCode

    ends = {each.partition: each.high_watermark for each in found}
    for each in results:
        if each.error == ErrorCode.OFFSET_OUT_OF_RANGE:
            fail(f"{topic}-{each.partition} ends at offset {ends[each.partition]}: there is nothing beyond", EXIT_NO)
        if each.error is not None:
            fail(f"{topic}-{each.partition} was not moved: {each.error.name}", EXIT_NO)


# --- what is looked at ------------------------------------------------------------------------------------------------


def _found(client: "Client", topic: str, subscription: str, partition: int | None) -> "list[SubscriptionDescription]":
    """Return the subscription in each partition; end the command where there is none."""
    from exacta.client.subscriptions import describe_subscriptions

    name, named = _in_the_log(topic)
    wanted = named if partition is None else partition
    found = list(describe_subscriptions(client, [name], [subscription], partition=wanted, details=True))
    if not found:
        _fail_without(client, name, subscription, wanted)
    return found


def _fail_without(client: "Client", topic: str, subscription: str, partition: int | None) -> NoReturn:
    from exacta.client.subscriptions import describe_subscriptions

    _check_topics(client, [topic])
    where = f"topic {topic}" if partition is None else f"{topic}-{partition}"
    others = {each.name for each in islice(describe_subscriptions(client, [topic], partition=partition), 1000)}
    not_found(f"{where} has no subscription", subscription, others)


def _check_topics(client: "Client", topics: "Iterable[str]") -> None:
    """End the command where a topic is not there."""
    known = client.topic_names()
    for topic in topics:
        if topic not in known:
            no_topic(client, topic)


def _in_the_log(topic: str) -> tuple[str, int | None]:
    """Return the name of a topic in the log, and the partition if a Pulsar name names one."""
    if "://" not in topic:
        return topic, None
    from exacta.protocol.pulsar.topic_names import InvalidTopicName, parse_topic_name
    from exacta.pulsar.topic_names import kafka_name

    try:
        parsed = parse_topic_name(topic)
        return kafka_name(parsed), parsed.partition
    except InvalidTopicName as error:
        fail(str(error), EXIT_USAGE)


# --- what is shown ----------------------------------------------------------------------------------------------------


def _bounds(client: "Client", topic: str) -> str:
    """Return the options that bound what is kept for a topic's subscriptions, in words."""
    from exacta.client.configs import topic_configs
    from exacta.client.errors import KafkaError

    try:
        found = topic_configs(client, topic, _BOUNDS)
    except KafkaError as error:
        return f"not shown ({error})"
    return ", ".join(f"{name}={found[name]}" for name in _BOUNDS if name in found)


def _describe(found: "SubscriptionDescription", bounds: str) -> None:
    details = _details(found)
    say(f"{found.at}, subscription {found.name}: {_type(found)}, created {time_in_words(found.created_ms)}")
    say(
        f"  position {found.position}; the partition is stable up to {found.last_stable_offset} and ends at "
        f"{found.high_watermark}"
    )
    say(
        f"  backlog {found.left}, pending {found.pending}, held back {found.held_back} "
        f"(uncommitted {details.uncommitted})"
    )
    if found.is_durable:
        say(f"  bounds: {bounds}")
    if found.is_over_quota:
        say("  over the quota: nothing is appended until less is kept for the topic's subscriptions")
    if found.run_count:
        say(f"  acknowledged beyond the position: {runs_in_words(details.acknowledged_runs, found.run_count)}")
    for each in details.pending:
        say(f"  pending in {each.transaction}: {acknowledged_in_words(each.before, each.runs, each.run_count)}")
    if found.pending_count > len(details.pending):
        say(f"  pending in {counted(found.pending_count - len(details.pending), 'transaction')} more")
    if details.noted_entries:
        say(
            f"  {details.noted_entries} entries are unacknowledged, {details.waiting_entries} of them wait; "
            f"{details.redelivered_entries} were redelivered, up to {details.most_redeliveries} times"
        )
    for consumer in details.consumers:
        active = ", active" if consumer.is_active else ""
        say(
            f"  consumer '{consumer.name}': {consumer.permits} permits, holds {consumer.held}, "
            f"priority {consumer.priority}{active}"
        )
    for key, value in sorted(details.properties.items()):
        say(f"  property {key} = {value}")
    for line in _reasons(found, details):
        say(f"  waits: {line}")


def _reasons(found: "SubscriptionDescription", details: "Details") -> Iterator[str]:
    """Yield why messages are not delivered now; nothing waits where there is no message."""
    if not found.left and not found.pending and not found.held_back:
        yield "there is no message that it has not acknowledged"
        return
    yield from details.waits
    for each in details.held_by:
        yield (
            f"{each.transactional_id} is open for {each.open_for_ms // 1000} s, and has written from offset "
            f"{each.first_offset} on"
        )


def _type(found: "SubscriptionDescription") -> str:
    words = [found.subscription_type]
    if not found.is_durable:
        words.append("not durable")
    if found.reads_uncommitted:
        words.append("reads uncommitted messages")
    return ", ".join(words)


def _details(found: "SubscriptionDescription") -> "Details":
    assert found.details is not None
    return found.details
