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
from exacta.core.commands.subscriptions import EARLIEST, LATEST
from exacta.core.ids import Body, Offset, PartitionId
from exacta.core.rejections import Rejection
from exacta.core.values.runs import Run, add
from exacta.core.values.subscriptions import SubscriptionType
from exacta.front.broker import Broker
from exacta.front.words import words_of
from exacta.ports.log import Answer, Lookups
from exacta.protocol.pulsar.message_ids import acknowledged, is_earliest, is_latest, least_count
from exacta.protocol.pulsar.messages_pb2 import MessageIdData
from exacta.pulsar.consumers import Consumer
from exacta.pulsar.context import Ack, PulsarConnection, RequestGroup, logger
from exacta.pulsar.provisional_ids import resolve

NOTHING_TO_ACKNOWLEDGE: Final = frozenset(
    {Rejection.UNKNOWN_TOPIC_OR_PARTITION, Rejection.SUBSCRIPTION_NOT_FOUND, Rejection.CONSUMER_NOT_FOUND}
)
"""The rejections that say that the subscription is gone, and with it what was to be acknowledged."""

MOST_PARTS: Final = 20_000
"""One ACK may name this many parts of entries that do not adjoin. A subscription, or a transaction, has room for half
as many, and this many fill all gaps between those.

The thousand ids of one frame may have thousands of parts each, which would hold up the loop for long.
"""


class Acknowledged(Struct):
    """The messages that a consumer acknowledges: in runs, and all before an offset, which is 0 where there is none."""

    runs: list[Run] = field(default_factory=list)
    before: Offset = Offset(0)

    def take(self, ack: Ack) -> None:
        """Take the messages of an ACK in."""
        for run in ack.runs:
            add(self.runs, *run)
        self.before = max(self.before, ack.before)


def end_beyond(partition_id: PartitionId, message: MessageIdData) -> Offset | None:
    """Return the end that an id lies beyond, `EARLIEST` or `LATEST`. None: it lies between the two.

    An id of a topic that is gone lies before all messages, since numbers of partitions grow.
    """
    if is_earliest(message):
        return EARLIEST
    if is_latest(message) or message.ledger_id > partition_id:
        return LATEST
    return EARLIEST if message.ledger_id < partition_id else None


def first_left(lookups: Lookups, partition_id: PartitionId, message: MessageIdData) -> Offset | None:
    """Return the first message of an entry that an id's ack set leaves, or where it was; None: it never was there."""
    found = lookups.batch_at(partition_id, message.entry_id)
    if found is None:
        gap = lookups.gap_at(partition_id, message.entry_id)
        return None if gap is None else gap[0]
    first, last = found
    if first != message.entry_id and lookups.body_at(partition_id, first) is Body.KAFKA:
        return Offset(message.entry_id)  # an entry of its own, in a Key_Shared subscription
    if not message.ack_set or first != message.entry_id:
        return first
    done = acknowledged(first, last - first + 1, message.ack_set)
    return Offset(done[0].stop) if done and done[0].start == first else first


def name(broker: Broker, ack: Ack, ids: Sequence[MessageIdData]) -> None:
    """Look at the next ids of an ACK of single messages.

    If the consumer has got a part of an entry, the rest of the entry is not meant (see `Consumer.left_out`). Clients
    put all ids into one ACK that their user has given them at once, so there may be as many as fill a command.
    """
    consumer = ack.consumer
    lookups, partition_id, in_transaction = broker.engine.lookups, consumer.partition_id, ack.txn_id is not None
    ack.unclear = resolve(broker.engine.advice, partition_id, ids) or ack.unclear
    if ack.is_too_much:
        return
    bases: list[int] = []
    sizes: dict[int, int] = {}  # of entries, as their clients say them
    ack_sets: dict[int, tuple[int, ...]] = {}  # by their places in the list above, as hardly any id has one
    for each in ids:
        if each.ledger_id == partition_id:
            if words := tuple(each.ack_set):
                ack_sets[len(bases)] = words
            if in_transaction and each.batch_size > 0:
                sizes[len(bases)] = each.batch_size
            bases.append(each.entry_id)
    # Each Kafka message is an entry of its own there, since several consumers may share its batch.
    alone = Body.KAFKA if consumer.subscription_type is SubscriptionType.KEY_SHARED else None
    lasts, gaps = lookups.entries((partition_id, consumer.subscription), set(bases), alone)
    runs = ack.runs
    for number, base in enumerate(bases):
        first = Offset(base)
        last, words = lasts.get(base), ack_sets.get(number, ())
        if last is None and base in gaps:
            last = gaps[base]
            if in_transaction:  # an id must not stand for more: what another one names would be acknowledged twice
                last = min(last, Offset(base + (sizes.get(number) or least_count(words)) - 1))
            else:
                words = ()
        if last is None:
            continue
        parts: list[Run] = [(first, last)]
        if words:
            named_parts = acknowledged(first, last - first + 1, words)
            parts = [(Offset(part.start), Offset(part.stop - 1)) for part in named_parts]
        for part in consumer.got(first, parts) if consumer.left_out else parts:
            if runs and runs[-1][1] + 1 == part[0]:
                runs[-1] = (runs[-1][0], part[1])
            else:
                runs.append(part)
        if len(runs) > MOST_PARTS:
            ack.is_too_much = True
            return
    ack.is_whole = ack.is_whole and len(bases) == len(ids) and lasts.keys() | gaps.keys() >= set(bases)


def joined(runs: list[Run]) -> list[Run]:
    """Return the runs in order, with those that adjoin as one; two that have messages in common stay two."""
    found: list[Run] = []
    for run in sorted(runs):
        if found and found[-1][1] + 1 == run[0]:
            found[-1] = (found[-1][0], run[1])
        else:
            found.append(run)
    return found


def name_up_to(broker: Broker, ack: Ack) -> None:
    """Look at the one id of a cumulative ACK.

    A client that does not acknowledge the messages of a batch one by one acknowledges what is before the batch, by the
    number before the number of the batch's entry. Here that is the last message of the entry before it.
    """
    partition_id = ack.consumer.partition_id
    ack.unclear = resolve(broker.engine.advice, partition_id, ack.ids)
    before = _end_of(broker.engine.lookups, ack)
    ack.is_whole, ack.before = before is not None, before or Offset(0)


def _end_of(lookups: Lookups, ack: Ack) -> Offset | None:
    """Return the offset before which a cumulative ACK acknowledges everything; None: its message is not there."""
    partition_id, [message] = ack.consumer.partition_id, ack.ids
    if message.ledger_id != partition_id or is_earliest(message):
        return None
    found = lookups.batch_at(partition_id, message.entry_id)
    if found is None:
        gap = lookups.gap_at(partition_id, message.entry_id)
        return None if gap is None else _behind_removed(gap, ack)
    first, last = found
    if first != message.entry_id:
        return Offset(last + 1)
    parts = acknowledged(first, last - first + 1, message.ack_set)
    return Offset(parts[0].stop) if parts and parts[0].start == first else first


def _behind_removed(gap: Run, ack: Ack) -> Offset:
    """Return the offset before which an ACK acknowledges everything whose message is gone.

    At once it acknowledges all that is gone there. In a transaction it must leave room for the next one to go further.
    """
    [message] = ack.ids
    if ack.txn_id is None:
        return Offset(gap[1] + 1)
    count = message.batch_size if message.batch_size > 0 else least_count(message.ack_set)
    parts = acknowledged(gap[0], min(count, gap[1] - gap[0] + 1), message.ack_set)
    return Offset(parts[0].stop) if parts and parts[0].start == gap[0] else gap[0]


def _command(asked: Sequence[Ack]) -> Acknowledge:
    """Return the one command for ACKs that may be decided together."""
    first = asked[0]
    return Acknowledge(
        **first.consumer.where,
        consumer_id=first.consumer.consumer_id,
        runs=tuple([run for each in asked for run in each.runs]),
        before=first.before or None,
        transaction=first.transaction,
    )


class Acknowledgements:
    """The acknowledgements of one connection that were not decided yet: some that want answers, or some that do not."""

    def __init__(self, broker: Broker, connection: PulsarConnection) -> None:
        self._broker = broker
        self._connection = connection
        self._soon: dict[Consumer, Acknowledged] = {}
        self._asked: list[Ack] = []

    def take(self, ack: Ack) -> bool:
        """Gather one; return whether it is the first one, so that somebody must flush."""
        if ack.is_soon:
            if self._asked:
                self.flush()
            is_first = not self._soon
            self._soon.setdefault(ack.consumer, Acknowledged()).take(ack)
            return is_first
        if self._soon or (self._asked and not ack.joins(self._asked[0])):
            self.flush()
        self._asked.append(ack)
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

    def _ask_together(self, asked: list[Ack]) -> None:
        def end() -> None:
            for each in asked:
                each.request.end()

        if self._nobody_listens:
            end()
            return

        commands = [_command(asked)]
        if len(asked) > 1 and self._broker.engine.would_refuse(commands[0], self._connection.peer_host):
            commands = [_command([each]) for each in asked]

        def answered(answers: list[Answer]) -> None:
            for each, answer in zip(asked, answers * len(asked) if len(answers) == 1 else answers, strict=True):
                each.done(each, answer)

        group = RequestGroup(self._connection, [each.request for each in asked], end)
        self._broker.submit(group, commands, answered)

    # --- without an answer --------------------------------------------------------------------------------------------

    def _acknowledge_soon(self, soon: dict[Consumer, Acknowledged]) -> None:
        commands: list[Command] = [
            AcknowledgeSoon(
                **consumer.where, consumer_id=consumer.consumer_id, runs=tuple(each.runs), before=each.before or None
            )
            for consumer, each in soon.items()
        ]
        if not self._nobody_listens:
            self._broker.engine.submit(commands, self._answered, host=self._connection.peer_host)

    def _answered(self, answers: list[Answer]) -> None:
        """Tell the operator of a refusal, and let the client begin again: it gets what is not acknowledged."""
        refused = [each for each in answers if isinstance(each, Rejection) and each not in NOTHING_TO_ACKNOWLEDGE]
        if refused and not self._connection.has_ended:
            logger.warning(
                "closing the connection of %s, whose acknowledgement is refused: %s",
                self._connection.peer,
                words_of(refused[0]),
            )
            self._connection.abort()
