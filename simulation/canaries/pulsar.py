"""Planted bugs of Pulsar's front."""

from typing import Any

from exacta.core.ids import NO_PRODUCER_ID
from exacta.core.log import repeats
from exacta.core.log.repeats import Kind, Stored, Verdict
from exacta.pulsar import acknowledging, sending
from exacta.pulsar.consumers import Consumers
from exacta.pulsar.handlers import p10_ack
from simulation.canaries import Replacements, canary


@canary("an acknowledgement of one message of a batch takes the whole batch", shows=r"liveness: .*pulsar")
def ack_set_ignored() -> Replacements:
    def acknowledged(entry_offset: int, message_count: int, words: Any) -> list[range]:
        return [range(entry_offset, entry_offset + message_count)]

    return [(acknowledging, "acknowledged", acknowledged)]


@canary(
    "a message is sent outside of the transaction that its command names", shows=r"Pulsar: .* not committed|two results"
)
def sent_outside_its_transaction() -> Replacements:
    return [(sending.Sends, "_transaction", lambda self, command: (None, NO_PRODUCER_ID))]


@canary(
    "an acknowledgement counts outside of the transaction that its command names", shows=r"liveness: .*pulsar|Pulsar: "
)
def acknowledged_outside_its_transaction() -> Replacements:
    return [(p10_ack, "txn_id_of_part", lambda command: None)]


@canary("a consumer that is gone keeps what it had", shows=r"liveness: .*pulsar")
def consumer_stays() -> Replacements:
    def disconnect(self: Consumers, consumers: Any) -> None:
        for consumer in list(consumers):
            self.forget(consumer)

    return [(Consumers, "disconnect", disconnect)]


@canary(
    "a batch of which a part is stored already is stored whole",
    shows=r"1: Batch\w+\(.*( that are not beyond | sequences above )",
)
def partly_stored_is_stored() -> Replacements:
    return [(repeats.TABLE[Kind.NAMED, False], Stored.SOME, Verdict.COUNTED)]


@canary("a batch of which a part is stored already is answered as stored", shows=r"Pulsar: copier")
def partly_stored_is_a_repeat() -> Replacements:
    return [(repeats.TABLE[Kind.NAMED, False], Stored.SOME, Verdict.REPEAT)]


@canary("the first part of a large message counts for all of it", shows=r"Pulsar: copier")
def part_counts_for_all() -> Replacements:
    return [(repeats.TABLE[Kind.NAMED, True], Stored.NONE, Verdict.COUNTED)]
