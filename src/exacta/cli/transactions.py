"""`exacta transactions …`: which transactions are open, what happened to one, and its end. On any Kafka cluster."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from exacta.cli.cluster import EXIT_NO, CommandConfig, Servers, client_of, fail, not_found
from exacta.cli.confirmation import Yes, require_consent
from exacta.cli.lines import acknowledged_in_words, counted, say
from exacta.cli.output import Output, OutputFormat, plain, print_json
from exacta.cli.times import now_ms, time_in_words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from exacta.client.routing import Client
    from exacta.readmodel.transactions import Explanation, PendingMessages
    from exacta.spark.owners import Owner

_TAKEOVER_TIMEOUT_MS = 1_000  # of a producer that never writes: every cluster allows that
_CLIENT_ID = "exacta-transactions"

transactions = typer.Typer(help="See what transactions do, and end one that is in the way.", no_args_is_help=True)

Name = Annotated[
    str,
    typer.Argument(
        metavar="TRANSACTION",
        help="A transactional id; or TxnID(0,17) or (0,17), where it has none.",
    ),
]
IsTransactionalId = Annotated[
    bool, typer.Option("--transactional-id", help="It is a transactional id, even if it is named like TxnID(0,17).")
]


@transactions.callback()
def root() -> None:
    """See what transactions do, and end one that is in the way."""


@transactions.command("list")
def list_open(
    output: Output = OutputFormat.TABLE,
    bootstrap_servers: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """Show every transaction that is open: whose, since when, until when, and where it holds readers back.

    What it has written to sidecar topics is staged: it holds nobody back, and is shown with its number of bytes.

    The transactions of Apache Pulsar's clients have no transactional ids. They are named like TxnID(0,17). One that
    spans both protocols is shown with both names.

    The oldest comes first. A transaction of a Spark query is shown with the query's name, application and checkpoint.
    The exit code is 0 even if none is open.
    """
    from exacta.client.explanations import explain
    from exacta.spark.owners import owners_of_transactions

    with client_of(bootstrap_servers, command_config, _CLIENT_ID) as client:
        found = sorted(explain(client), key=lambda each: each.start_ms or 0)
        owners = owners_of_transactions(client, [each.transactional_id for each in found if not each.is_handle])
    if output is OutputFormat.JSON:
        print_json([_in_json(each, owners) for each in found])
        return
    at_ms = now_ms()
    for each in found:
        _show(each, at_ms, owners)
    if not found:
        say("no transaction is open")


@transactions.command("explain")
def explain_one(
    name: Name,
    is_transactional_id: IsTransactionalId = False,
    output: Output = OutputFormat.TABLE,
    bootstrap_servers: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """Show what a transaction is doing, and why its producers were fenced and its transactions aborted.

    Exit code 1 if nothing is known of it.
    """
    from exacta.spark.owners import owners_of_transactions

    with client_of(bootstrap_servers, command_config, _CLIENT_ID) as client:
        found = _look_up(client, name, is_transactional_id)
        _check_known(client, found)
        owners = owners_of_transactions(client, [] if found.is_handle else [found.transactional_id])
    if output is OutputFormat.JSON:
        print_json(_in_json(found, owners))
        return
    _show(found, now_ms(), owners)
    for incident in found.incidents:
        whom = f"producer {incident.producer_id}, epoch {incident.producer_epoch}"
        asked = f" ({incident.client})" if incident.client else ""
        say(f"  {time_in_words(incident.at_ms)}  {incident.what}: {whom}: {incident.cause}{asked}")
    if not found.gives_reasons:
        say("  this cluster does not say why its producers were fenced or its transactions aborted")


@transactions.command("abort")
def abort(
    name: Name,
    is_transactional_id: IsTransactionalId = False,
    yes: Yes = False,
    bootstrap_servers: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """Abort the open transaction of a transactional id, and fence its producer; or one that has no transactional id.

    Exit code 1 if none is open.
    """
    from exacta.client.handles import abort_handle
    from exacta.client.transactions import init_producer_id
    from exacta.spark.owners import owners_of_transactions

    with client_of(bootstrap_servers, command_config, _CLIENT_ID) as client:
        found = _look_up(client, name, is_transactional_id)
        _check_known(client, found)
        if not found.is_open:
            fail(f"no transaction of {found.transactional_id} is open", EXIT_NO)
        _show(found, now_ms(), owners_of_transactions(client, [] if found.is_handle else [found.transactional_id]))
        question = "Abort it?" if found.is_handle else "Abort it? Its producer will be fenced"
        if found.deadline_ms is None and found.gives_reasons:
            question += ", and if another system has committed its part, this one is lost"
        require_consent(question, yes=yes)
        now = _look_up(client, name, is_transactional_id)
        if _identity(now) != _identity(found):
            fail(f"that transaction of {name} has ended meanwhile", EXIT_NO)
        if now.is_handle and now.transaction_id is not None:
            abort_handle(client, now.transaction_id)
            say(f"{now.transactional_id} is aborted")
            return
        init_producer_id(client, found.transactional_id, transaction_timeout_ms=_TAKEOVER_TIMEOUT_MS)
    say(f"the transaction of {found.transactional_id} is aborted, its producer fenced")


def _look_up(client: "Client", name: str, is_transactional_id: bool) -> "Explanation":
    """Explain what is meant: a handle if it is named like one, unless it is said to be a transactional id."""
    from exacta.client.explanations import explain
    from exacta.client.handles import handle_named

    handle = None if is_transactional_id else handle_named(name)
    (found,) = explain(client, [name]) if handle is None else explain(client, [], handles=[handle])
    return found


def _identity(found: "Explanation") -> tuple[object, ...]:
    """Return what tells one transaction from the next of the same name."""
    return found.state, found.producer_id, found.producer_epoch, found.start_ms, found.transaction_id


def _check_known(client: "Client", found: "Explanation") -> None:
    from exacta.client.transactions import list_transactions

    if not found.state and not found.incidents:
        if found.is_handle:
            hint = "; --transactional-id, if the transactional id of this name is meant"
            is_id_too = bool(_look_up(client, found.transactional_id, is_transactional_id=True).state)
            fail(f"nothing is known of transaction {found.transactional_id}{hint if is_id_too else ''}", EXIT_NO)
        names = list_transactions(client, "", states=())
        not_found("nothing is known of transactional id", found.transactional_id, names)


def _in_json(found: "Explanation", owners: "Mapping[str, Owner]") -> dict[str, Any]:
    """Return all that is known of a transaction, and the Spark query that it is of."""
    owner = None if found.is_handle else owners.get(found.transactional_id)
    told: dict[str, Any] = plain(found)
    return told | {"is_open": found.is_open, "of": None if owner is None else str(owner)}


def _show(found: "Explanation", at_ms: int, owners: "Mapping[str, Owner]") -> None:
    say(f"{_named(found)}: {_in_words(found, at_ms)}")
    if not found.is_handle and found.transactional_id in owners:
        say(f"  of {owners[found.transactional_id]}")
    if found.producer_id >= 0:
        whose = f", of {found.client}" if found.client else ""
        say(f"  producer {found.producer_id}, epoch {found.producer_epoch}{whose}")
    held = [f"{each} at {each.first_offset}" for each in found.partitions if each.first_offset is not None]
    if held:
        say(f"  holds readers back: {', '.join(held)}")
    for each in found.partitions:
        if each.staged_records:
            say(f"  staged: {each}, {counted(each.staged_records, 'record')} of {each.staged_bytes} bytes")
    registered = [str(each) for each in found.partitions if each.first_offset is None and not each.staged_records]
    if registered:
        say(f"  registered: {', '.join(registered)}")
    if found.groups:
        say(f"  offsets of: {', '.join(found.groups)}")
    for acknowledged in found.acknowledged:
        say(f"  acknowledged: {_acknowledged(acknowledged)}")
    if (more := found.subscription_count - len(found.acknowledged)) > 0:
        say(f"  acknowledged: messages of {counted(more, 'subscription')} more")


def _named(found: "Explanation") -> str:
    """Return its name; one that could be taken for a handle's is told apart."""
    from exacta.client.handles import handle_name, handle_named

    is_alike = not found.is_handle and handle_named(found.transactional_id) is not None
    name = f"transactional id {found.transactional_id}" if is_alike else found.transactional_id
    if found.is_joint and found.transaction_id is not None:
        return f"{name}, to Pulsar's clients {handle_name(found.transaction_id)}"
    return name


def _acknowledged(found: "PendingMessages") -> str:
    messages = acknowledged_in_words(found.before, found.runs, found.run_count)
    return f"{found.topic}-{found.partition}, subscription {found.subscription}: {messages or 'nothing any more'}"


def _in_words(found: "Explanation", at_ms: int) -> str:
    if not found.state:
        return "not known any more"
    if not found.is_open or found.start_ms is None:
        return found.state
    open_for = f"open for {max(0, at_ms - found.start_ms) // 1000} s"
    if found.deadline_ms is None:
        return f"{open_for}, without a time-out (two-phase commit)"
    return f"{open_for}, is aborted at {time_in_words(found.deadline_ms)} unless it ends before"
