"""`exacta transactions …`: which transactions are open, what happened to one, and its end. On any Kafka cluster."""

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from exacta.cli.cluster import EXIT_NO, CommandConfig, Servers, client_of, fail, not_found
from exacta.cli.lines import say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from exacta.client.explanations import Explanation
    from exacta.client.routing import Client
    from exacta.spark.owners import Owner

_TAKEOVER_TIMEOUT_MS = 1_000  # of a producer that never writes: every cluster allows that
_CLIENT_ID = "exacta-transactions"
_HANDLE = re.compile(r"TxnID\(0,[0-9]+\)")
"""The name of a transaction without a transactional id; a transactional id of that name is aborted in the same way."""

transactions = typer.Typer(help="See what transactions do, and end one that is in the way.", no_args_is_help=True)

TransactionalId = Annotated[str, typer.Argument(metavar="TRANSACTIONAL_ID")]


@transactions.callback()
def root() -> None:
    """See what transactions do, and end one that is in the way."""


@transactions.command("list")
def list_open(bootstrap_servers: Servers, command_config: CommandConfig = None) -> None:
    """Show every transaction that is open: whose, since when, until when, and where it holds readers back.

    The oldest comes first. A transaction of a Spark query is shown with the query's name, application and checkpoint.
    The exit code is 0 even if none is open.
    """
    from exacta.client.explanations import explain
    from exacta.spark.owners import owners_of_transactions

    with client_of(bootstrap_servers, command_config, _CLIENT_ID) as client:
        found = sorted(explain(client), key=lambda each: each.start_ms or 0)
        owners = owners_of_transactions(client, [each.transactional_id for each in found])
    now_ms = _now_ms()
    for each in found:
        _show(each, now_ms, owners)
    if not found:
        say("no transaction is open")


@transactions.command("explain")
def explain_one(
    transactional_id: TransactionalId, bootstrap_servers: Servers, command_config: CommandConfig = None
) -> None:
    """Show what a transactional id is doing, and why its producers were fenced and its transactions aborted.

    Exit code 1 if nothing is known of it.
    """
    from exacta.client.explanations import explain
    from exacta.spark.owners import owners_of_transactions

    with client_of(bootstrap_servers, command_config, _CLIENT_ID) as client:
        (found,) = explain(client, [transactional_id])
        _check_known(client, found)
        owners = owners_of_transactions(client, [transactional_id])
    _show(found, _now_ms(), owners)
    for incident in found.incidents:
        whom = f"producer {incident.producer_id}, epoch {incident.producer_epoch}"
        asked = f" ({incident.client})" if incident.client else ""
        say(f"  {_time(incident.at_ms)}  {incident.what}: {whom}: {incident.cause}{asked}")
    if not found.gives_reasons:
        say("  this cluster does not say why its producers were fenced or its transactions aborted")


@transactions.command("abort")
def abort(
    transactional_id: TransactionalId,
    bootstrap_servers: Servers,
    command_config: CommandConfig = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Abort the open transaction of a transactional id, and fence its producer.

    A transaction without a transactional id is named as `list` shows it: TxnID(0,17). Exit code 1 if none is open.
    """
    from exacta.client.abort_marker import abort_by_marker
    from exacta.client.explanations import explain
    from exacta.client.transactions import init_producer_id
    from exacta.spark.owners import owners_of_transactions

    with client_of(bootstrap_servers, command_config, _CLIENT_ID) as client:
        (found,) = explain(client, [transactional_id])
        _check_known(client, found)
        if not found.is_open:
            fail(f"no transaction of {transactional_id} is open", EXIT_NO)
        _show(found, _now_ms(), owners_of_transactions(client, [transactional_id]))
        if not yes and not typer.confirm("Abort it? Its producer will be fenced"):
            raise typer.Exit(EXIT_NO)
        (now,) = explain(client, [transactional_id])
        if (now.producer_id, now.producer_epoch, now.start_ms) != (
            found.producer_id,
            found.producer_epoch,
            found.start_ms,
        ):
            fail(f"that transaction of {transactional_id} has ended meanwhile", EXIT_NO)
        if now.gives_reasons and _HANDLE.fullmatch(transactional_id):
            written = [at for at, offset in now.partitions if offset is not None]
            if not written:
                fail(f"{transactional_id} has written nothing yet, and ends by itself at its time-out", EXIT_NO)
            abort_by_marker(client, written[0], now.producer_id, now.producer_epoch)
            say(f"{transactional_id} is aborted")
            return
        init_producer_id(client, transactional_id, transaction_timeout_ms=_TAKEOVER_TIMEOUT_MS)
    say(f"the transaction of {transactional_id} is aborted, its producer fenced")


def _check_known(client: "Client", found: "Explanation") -> None:
    from exacta.client.transactions import list_transactions

    if not found.state and not found.incidents:
        names = list_transactions(client, "", states=())
        not_found("nothing is known of transactional id", found.transactional_id, names)


def _show(found: "Explanation", now_ms: int, owners: "Mapping[str, Owner]") -> None:
    say(f"{found.transactional_id}: {_in_words(found, now_ms)}")
    if found.transactional_id in owners:
        say(f"  of {owners[found.transactional_id]}")
    if found.producer_id >= 0:
        whose = f", of {found.client}" if found.client else ""
        say(f"  producer {found.producer_id}, epoch {found.producer_epoch}{whose}")
    held = [f"{at.topic}-{at.partition} at {offset}" for at, offset in found.partitions if offset is not None]
    if held:
        say(f"  holds readers back: {', '.join(held)}")
    registered = [f"{at.topic}-{at.partition}" for at, offset in found.partitions if offset is None]
    if registered:
        say(f"  registered: {', '.join(registered)}")
    if found.groups:
        say(f"  offsets of: {', '.join(found.groups)}")


def _in_words(found: "Explanation", now_ms: int) -> str:
    if not found.state:
        return "not known any more"
    if not found.is_open or found.start_ms is None:
        return found.state
    open_for = f"open for {max(0, now_ms - found.start_ms) // 1000} s"
    if found.deadline_ms is None:
        return f"{open_for}, without a time-out (two-phase commit)"
    return f"{open_for}, is aborted at {_time(found.deadline_ms)} unless it ends before"


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).astimezone().isoformat(" ", "seconds")


def _now_ms() -> int:
    return int(datetime.now(UTC).timestamp() * 1000)
