"""Handles: transactions without a transactional id, as Apache Pulsar's clients begin them on an Exacta."""

import re

from exacta.client.deadline import Deadline
from exacta.client.routing import Client, Controller
from exacta.protocol.kafka.messages.k17789_abort_handles import AbortHandlesRequest

_NAME = re.compile(r"(?:TxnID)?\(0,(0|[1-9][0-9]{0,17})\)|\{0 (0|[1-9][0-9]{0,17})\}", re.ASCII)
"""`TxnID(0,17)`; `(0,17)`, as the client for Java writes it; `{0 17}`, as Go does."""


def handle_name(transaction_id: int) -> str:
    """Return the name of a handle."""
    return f"TxnID(0,{transaction_id})"


def handle_named(name: str) -> int | None:
    """Return the id of the handle that has this name, here or at a Pulsar client; None for any other name."""
    found = _NAME.fullmatch(name)
    return None if found is None else int(found[1] or found[2])


def abort_handle(client: Client, transaction_id: int, deadline: Deadline | None = None) -> None:
    """Abort a handle; one that is aborted already is left as it is.

    Raises what `Client.call` raises: INVALID_TXN_STATE where it has committed.
    """
    client.call(
        Controller(),
        AbortHandlesRequest(handles=[transaction_id]),
        what=f"aborting {handle_name(transaction_id)}",
        codes=lambda reply: (reply.error_code, *(each.error_code for each in reply.results)),
        deadline=deadline,
    )
