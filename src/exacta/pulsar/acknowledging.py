"""Acknowledgements as clients send them: from message ids and ack sets to runs of offsets, and gathered where they may.

An id names an entry, whole, or as far as its ack set says. How many messages an entry has is looked up in the log,
since clients do not say it reliably. An id of an entry that compaction has removed since it was delivered stands for
all that is not there any more up to the next entry. Any other id that names nothing asks for nothing: its topic or its
messages are gone.

Theory of operation. ACKs are gathered with the others of this turn of the loop. Those that want no answer become one
command for each consumer, and those that want one become one command as long as they are of one consumer and of one
transaction. If that command would be refused, each ACK is one command of its own, in the same step. Every command but
SEND flushes first, so that it sees what was acknowledged before it. An ACK and a SEND have nothing to do with each
other, and their clients send them by turns.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct, field

from exacta.core.commands import Acknowledge, AcknowledgeSoon, Command
from exacta.core.ids import Offset, PartitionId
from exacta.core.rejections import Rejection
from exacta.core.state.runs import Run, add
from exacta.core.subscriptions.commands import EARLIEST, LATEST
from exacta.engine.engine import Answer
from exacta.engine.lookups import Lookups
from exacta.protocol.pulsar.message_ids import acknowledged, is_earliest, is_latest
from exacta.protocol.pulsar.messages_pb2 import CommandAck, MessageIdData
from exacta.pulsar.broker import PulsarBroker
from exacta.pulsar.consumers import Consumer
from exacta.pulsar.context import Asked, PulsarConnection, logger
from exacta.pulsar.errors import text_of
from exacta.pulsar.groups import RequestGroup
from exacta.pulsar.transactions import is_transactional

NOTHING_TO_ACKNOWLEDGE: Final = frozenset(
    {Rejection.UNKNOWN_TOPIC_OR_PARTITION, Rejection.SUBSCRIPTION_NOT_FOUND, Rejection.CONSUMER_NOT_FOUND}
)
"""The rejections that say that the subscription is gone, and with it what was to be acknowledged."""

MOST_PARTS: Final = 100_000
"""One ACK may name so many parts of entries. A subscription, or a transaction, has no room for more either.

The thousand ids of one frame may have thousands of parts each, which would hold up the loop for long.
"""


class Acknowledged(Struct):
    """The messages that a consumer acknowledges: in runs, and all before an offset, which is 0 where there is none."""

    runs: list[Run] = field(default_factory=list)
    before: Offset = Offset(0)

    def take(self, other: "Acknowledged") -> None:
        """Take others in."""
        for run in other.runs:
            add(self.runs, *run)
        self.before = max(self.before, other.before)


def _batch_of(lookups: Lookups, partition_id: PartitionId, message: MessageIdData) -> tuple[Offset, Offset] | None:
    """Return the first and the last offset of the batch into which an id falls; None: it falls into none."""
    if message.ledger_id != partition_id or is_earliest(message):
        return None
    return lookups.batch_at(partition_id, message.entry_id)


def entry_of(lookups: Lookups, partition_id: PartitionId, message: MessageIdData) -> tuple[Offset, Offset] | None:
    """Return the first and the last offset of the entry that an id names; None: there is none."""
    found = _batch_of(lookups, partition_id, message)
    return found if found is not None and found[0] == message.entry_id else None


def _gap_of(lookups: Lookups, partition_id: PartitionId, message: MessageIdData) -> Run | None:
    """Return what is not there any more from an id's entry on; None: something is there, or nothing ever was."""
    if message.ledger_id != partition_id or is_earliest(message):
        return None
    return lookups.gap_at(partition_id, message.entry_id)


def end_beyond(partition_id: PartitionId, message: MessageIdData) -> Offset | None:
    """Return the end that an id lies beyond, `EARLIEST` or `LATEST`. None: it lies between the two.

    An id of a topic that is gone lies before all messages, since numbers of partitions grow.
    """
    if is_earliest(message):
        return EARLIEST
    if is_latest(message) or message.ledger_id > partition_id:
        return LATEST
    return EARLIEST if message.ledger_id < partition_id else None


def _delivered(lookups: Lookups, consumer: Consumer, message: MessageIdData) -> tuple[Offset, Offset] | None:
    """Return what `entry_of` returns for an entry that its consumer has, without looking into the log."""
    if message.ledger_id != consumer.partition_id:
        return None
    return lookups.noted_entry((consumer.partition_id, consumer.subscription), message.entry_id)


def first_left(lookups: Lookups, partition_id: PartitionId, message: MessageIdData) -> Offset | None:
    """Return the first message of an entry that an id's ack set leaves, or where it was; None: it never was there."""
    found = lookups.batch_at(partition_id, message.entry_id)
    if found is None:
        gap = _gap_of(lookups, partition_id, message)
        return None if gap is None else gap[0]
    first, last = found
    if not message.ack_set or first != message.entry_id:
        return first
    done = acknowledged(first, last - first + 1, message.ack_set)
    return Offset(done[0].stop) if done and done[0].start == first else first


def named(lookups: Lookups, consumer: Consumer, command: CommandAck) -> tuple[list[Run], Offset, bool] | None:
    """Return the runs that an ACK names, one for each part that hangs together, the offset, and whether all is there.

    The runs are as the client has sent them: two of them may have messages in common. If the consumer has got a part of
    an entry, the rest of the entry is not meant (see `Consumer.left_out`). None: there are too many.
    """
    runs: list[Run] = []
    before, is_whole = Offset(0), True
    is_cumulative = command.ack_type == CommandAck.Cumulative
    entries: dict[tuple[int, int], tuple[Offset, Offset] | None] = {}
    for message in command.message_id:
        if len(runs) > MOST_PARTS:
            return None
        key = (message.ledger_id, message.entry_id)
        if key not in entries:
            delivered = _delivered(lookups, consumer, message)
            entries[key] = delivered or entry_of(lookups, consumer.partition_id, message)
        entry = entries[key]
        if entry is None and is_transactional(command):
            entry = _removed_entry(lookups, consumer.partition_id, message)
        if entry is None:
            found = _instead_of_entry(lookups, consumer.partition_id, message, is_cumulative)
            if found is None:
                is_whole = False
            elif is_cumulative:
                before = max(before, Offset(found[1] + 1))
            else:
                runs.append(found)
            continue
        first, last = entry
        parts = acknowledged(first, last - first + 1, message.ack_set)
        if not is_cumulative:
            named_runs = [(Offset(part.start), Offset(part.stop - 1)) for part in parts]
            runs += consumer.got(first, named_runs) if consumer.left_out else named_runs
        else:
            is_begun = bool(parts) and parts[0].start == first
            before = max(before, Offset(parts[0].stop if is_begun else first))
    return None if len(runs) > MOST_PARTS else (runs, before, is_whole)


def _instead_of_entry(
    lookups: Lookups, partition_id: PartitionId, message: MessageIdData, is_cumulative: bool
) -> Run | None:
    """Return the messages that an id means that names no entry; None: it means none.

    A client that does not acknowledge the messages of a batch one by one acknowledges what is before the batch, by the
    number before that of the batch's entry. Here that is the last message of the entry before it.
    """
    inside = _batch_of(lookups, partition_id, message) if is_cumulative else None
    return inside or _gap_of(lookups, partition_id, message)


def _removed_entry(lookups: Lookups, partition_id: PartitionId, message: MessageIdData) -> Run | None:
    """Return the first and the last offset of an entry that compaction has removed, as far as its id tells them.

    In a transaction an id must not stand for more: the messages of another id beside it would be acknowledged twice.
    """
    gap = _gap_of(lookups, partition_id, message)
    if gap is None:
        return None
    count = message.batch_size if message.batch_size > 0 else max(64 * len(message.ack_set), 1)
    return gap[0], min(gap[1], Offset(gap[0] + count - 1))


def _command(asked: Sequence[Asked]) -> Acknowledge:
    """Return the one command for ACKs that may be decided together."""
    first = asked[0]
    return Acknowledge(
        **first.consumer.where,
        runs=tuple([run for each in asked for run in each.runs]),
        before=first.before or None,
        transaction=first.transaction,
        consumer_id=first.consumer.consumer_id,
    )


class Acknowledgements:
    """The acknowledgements of one connection that were not decided yet: some that want answers, or some that do not."""

    def __init__(self, broker: PulsarBroker, connection: PulsarConnection) -> None:
        self._broker = broker
        self._connection = connection
        self._soon: dict[Consumer, Acknowledged] = {}
        self._asked: list[Asked] = []

    def take(self, consumer: Consumer, runs: Sequence[Run], before: Offset) -> bool:
        """Gather one that wants no answer; return whether it is the first one, so that somebody must flush."""
        if self._asked:
            self.flush()
        is_first = not self._soon
        self._soon.setdefault(consumer, Acknowledged()).take(Acknowledged(list(runs), before))
        return is_first

    def ask(self, asked: Asked) -> bool:
        """Gather one that wants an answer; return whether it is the first one, so that somebody must flush."""
        if self._soon or (self._asked and not asked.joins(self._asked[0])):
            self.flush()
        self._asked.append(asked)
        return len(self._asked) == 1

    def flush(self) -> None:
        """Let what was gathered be decided."""
        if self._soon:
            soon, self._soon = self._soon, {}
            self._acknowledge_soon(soon)
        elif self._asked:
            asked, self._asked = self._asked, []
            self._ask_together(asked)

    @property
    def _nobody_listens(self) -> bool:
        return self._connection.engine_has_failed or self._broker.engine.dispatcher.has_stopped

    # --- with an answer -----------------------------------------------------------------------------------------------

    def _ask_together(self, asked: list[Asked]) -> None:
        if self._nobody_listens:
            for each in asked:
                each.request.end()
            return

        commands = [_command(asked)]
        if len(asked) > 1 and self._broker.engine.would_refuse(commands[0]):
            commands = [_command([each]) for each in asked]

        def answered(answers: list[Answer]) -> None:
            for each, answer in zip(asked, answers * len(asked) if len(answers) == 1 else answers, strict=True):
                each.done(answer)

        self._broker.submit(RequestGroup(self._connection, [each.request for each in asked]), commands, answered)

    # --- without an answer --------------------------------------------------------------------------------------------

    def _acknowledge_soon(self, soon: dict[Consumer, Acknowledged]) -> None:
        commands: list[Command] = [
            AcknowledgeSoon(**consumer.where, runs=tuple(each.runs), before=each.before or None)
            for consumer, each in soon.items()
        ]
        if not self._nobody_listens:
            self._broker.engine.submit(commands, self._answered)

    def _answered(self, answers: list[Answer]) -> None:
        """Tell the operator of a refusal, and let the client begin again: it gets what is not acknowledged."""
        refused = [each for each in answers if isinstance(each, Rejection) and each not in NOTHING_TO_ACKNOWLEDGE]
        if refused and not self._connection.has_ended:
            logger.warning(
                "closing the connection of %s, whose acknowledgement is refused: %s",
                self._connection.peer,
                text_of(refused[0]),
            )
            self._connection.abort()
