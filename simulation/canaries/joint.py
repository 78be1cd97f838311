"""Planted bugs of transactions over both protocols."""

from typing import Any

from msgspec.structs import replace

from exacta.core.events import TransactionEnded
from exacta.core.transactions import binding, fold, handle, transaction, transaction_set
from exacta.core.transactions import ending as ending_room
from simulation.canaries import Replacements, canary


@canary(
    "the end of a joint transaction writes no markers for what Pulsar's side has written",
    shows=r"3: TransactionEnded.* leaves partition|7: TransactionEnded.* left .* open",
)
def other_side_gets_no_marker() -> Replacements:
    ending = ending_room.ending

    def for_the_first_alone(state: Any, ended: Any, **options: Any) -> TransactionEnded:
        event: TransactionEnded = ending(state, ended, **options)
        return replace(event, markers=tuple(each for each in event.markers if each[2] == event.producer_ids[0]))

    return [(room, "ending", for_the_first_alone) for room in (binding, handle, transaction, transaction_set)]


@canary(
    "the end of a joint transaction leaves its acknowledgements pending",
    shows=r"10: .* pending, its log says|3: transaction .* has messages pending|liveness: .*joint",
)
def other_side_stays_pending() -> Replacements:
    close = fold._close

    def without_subscriptions(state: Any, ended: Any, event: Any) -> None:
        if ended.is_joint:
            ended.subscriptions.clear()
        close(state, ended, event)

    return [(fold, "_close", without_subscriptions)]


@canary(
    "a late write of Kafka's side begins the next transaction after the other side's end",
    shows=r"3: TransactionBegun.* has not heard|a late write by Kafka's side is taken",
)
def late_write_begins_the_next() -> Replacements:
    return [(transaction, "refusal_of_write", lambda held: None)]
