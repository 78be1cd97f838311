"""Consume, transform, produce with confluent-kafka: records and offsets in one transaction (KIP-447).

Owns the order of the calls, which positions the consumer goes back to, and which failures a repeat mends. It owns
neither client: the program makes and closes both.

Theory of operation. The broker takes offsets only from the member and the generation that come with them, and a new
owner of a partition gets no offset while a transaction holds one that is undecided. Nothing is doubled if two things
hold. The metadata of the group must be taken before the messages: then they name a generation in which the messages'
partitions were this member's, and are refused once another one may have them. And the member must have joined: a broker
compares nothing if the metadata name no member. So metadata are taken before and after the first messages of a
transaction. If they differ, or name no member, these messages are not handed out.

A consumer's position moves when messages are taken, so each message that is not committed has to come again. While the
group's metadata stay the same, the partitions are this member's without a break, and the consumer seeks to the first
offset that was taken. If they differ, a partition may have been another member's meanwhile, which went on from there.
Then the partition is in doubt: nothing of it is handed out before the consumer has gone to the offset that the group
has committed.
"""

import contextlib
import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from types import TracebackType
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition

logger = logging.getLogger(__name__)

Place = tuple[str, int]
"""A topic and a partition."""

CALL_S = 10.0
"""A call of the producer that takes longer is begun again, which goes on with it; meanwhile it is told, and Ctrl-C ends
the wait."""
PAUSE_S = 0.1
"""The time between a call that has failed for now and its repetition: librdkafka's own retry.backoff.ms."""

MENDED_BY_A_REPEAT = frozenset(
    {
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.REBALANCE_IN_PROGRESS,
        KafkaError.FENCED_MEMBER_EPOCH,
        KafkaError.STALE_MEMBER_EPOCH,
        KafkaError.TRANSACTION_ABORTABLE,
        KafkaError._TIMED_OUT,
        KafkaError._MSG_TIMED_OUT,
    }
)
"""A transaction that fails by one of these is aborted without an error: a rebalance, or a broker that was away."""
NOT_NOW = frozenset(
    {
        KafkaError._TIMED_OUT,
        KafkaError._TRANSPORT,
        KafkaError._WAIT_COORD,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.NOT_COORDINATOR,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.STALE_MEMBER_EPOCH,
    }
)
"""Committed offsets cannot be told now for one of these reasons, but later."""
PASSED_OVER = frozenset({KafkaError._PARTITION_EOF, KafkaError._MAX_POLL_EXCEEDED})
"""These errors among the messages need nothing done: the second one is a rebalance, which the metadata show."""


class Positions:
    """The consumer's positions, and what it takes: a message goes to one transaction, or comes again."""

    def __init__(self, consumer: Any) -> None:
        self.consumer = consumer
        self._in_doubt: dict[Place, int] = {}
        """Partitions that may have been another member's, and the first offset that was taken of each."""
        self.errors: list[KafkaError] = []
        """The consumer has told these among its messages, and nobody has raised them yet."""
        self._was_member = False
        self._taken_back_without_member = 0

    def take(self, count: int, timeout_s: float) -> list[Any]:
        """Wait for a message, and take it together with those that are there already."""
        messages = list(self.consumer.consume(1, timeout_s))
        if messages and count > 1:
            # Without a wait no partition can go and come back in between: what was taken is of one assignment.
            try:
                messages += self.consumer.consume(count - 1, 0)
            except BaseException:
                self.doubt(firsts(_apart(messages)[0]))  # the program's own callback has failed
                raise
        records, errors = _apart(messages)
        self.errors += errors
        return records

    def membership_of(self, before: Any, messages: Iterable[Any]) -> Any:
        """Return the metadata of the group by which `messages` may be committed; None if they are to come again.

        `before` are the metadata before the messages were taken. Raises RuntimeError if the consumer has not
        subscribed.
        """
        member_id = self.consumer.memberid()
        joined = bool(member_id) and (not isinstance(before, bytes) or member_id.encode() in before)
        if joined and before == self.consumer.consumer_group_metadata():
            self._was_member = True
            return before
        if self._was_member:
            self.doubt(firsts(messages))
        else:
            self.seek(firsts(messages))
        if not member_id:
            self._taken_back_without_member += 1
            # A seek in each partition takes away all that the consumer's queue has from before a rebalance.
            if self._taken_back_without_member > len(self.consumer.assignment()) + 2:
                raise RuntimeError("the consumer is no member of a group: exactly_once needs one that has subscribed")
        return None

    def doubt(self, first_offsets: Mapping[Place, int]) -> None:
        """Remember that these partitions may have been another member's."""
        for place, offset in first_offsets.items():
            self._in_doubt[place] = min(offset, self._in_doubt.get(place, offset))

    def are_sure(self, messages: Iterable[Any]) -> bool:
        """Return whether messages may be handed out; if not, they come again, from where the group is now."""
        first_offsets = firsts(messages)
        doubtful = [place for place in first_offsets if place in self._in_doubt]
        if not doubtful:
            return True
        self.seek({place: offset for place, offset in first_offsets.items() if place not in self._in_doubt})
        self._settle(doubtful)
        return False

    def go_back(self, first_offsets: Mapping[Place, int], *, undisturbed: bool) -> None:
        """Let the messages of an aborted transaction come again. `undisturbed`: nobody else had them meanwhile."""
        if undisturbed:
            self.seek(first_offsets)
        else:
            self.doubt(first_offsets)
            with contextlib.suppress(KafkaException):  # it is raised when a message comes, if it is still so
                self._settle(first_offsets)

    def settle_assigned(self) -> None:
        """Go on where the group is, in what is in doubt and assigned: no further message may come that asks for it."""
        if self._in_doubt:
            assigned = {(each.topic, each.partition) for each in self.consumer.assignment()}
            self._settle(self._in_doubt.keys() & assigned)

    def _settle(self, doubtful: Collection[Place]) -> None:
        """Go on where the group is, in partitions that are in doubt, if that can be told now."""
        if not doubtful:
            return
        try:
            found = self.consumer.committed([TopicPartition(*place) for place in doubtful], CALL_S)
            for each in found:
                if each.error is not None:
                    raise KafkaException(each.error)
        except KafkaException as failure:
            if failure.args[0].code() not in NOT_NOW:
                raise
            return
        for each in found:
            place = each.topic, each.partition
            first = self._in_doubt.pop(place)
            self.seek({place: each.offset if each.offset >= 0 else first})

    def seek(self, offsets: Mapping[Place, int]) -> None:
        """Let the consumer go on at these offsets, in the partitions that it still has."""
        for (topic, partition), offset in offsets.items():
            try:
                self.consumer.seek(TopicPartition(topic, partition, offset))
            except KafkaException:  # most of all: it is not assigned any more
                self.doubt({(topic, partition): offset})


class Transaction:
    """One transaction: what `with once as transaction` gives to the block."""

    def __init__(self, positions: Positions) -> None:
        self.committed = False
        """After the block: whether its records and offsets are committed. If not, the messages come again."""
        self._positions = positions
        self._membership: Any = None
        self._first: dict[Place, int] = {}
        self._next: dict[Place, int] = {}
        self._is_open = True

    def consume(self, count: int = 1, timeout: float = 1.0) -> list[Any]:
        """Return up to `count` messages; wait at most `timeout` seconds for the first one.

        The transaction commits the offsets of all messages that it has returned, whether the block has looked at them
        or not. Raises confluent-kafka's `KafkaException` for an error that the consumer tells among its messages.
        """
        if not self._is_open:
            raise RuntimeError("the transaction is over: consume inside of its block")
        positions, deadline = self._positions, time.monotonic() + timeout
        while True:
            before = self._membership
            if before is None:
                before = positions.consumer.consumer_group_metadata()
            positions.settle_assigned()
            messages = positions.take(count, max(0.0, deadline - time.monotonic()))
            if messages:
                membership = self._membership or positions.membership_of(before, messages)
                if membership is not None and positions.are_sure(messages):
                    self._membership = membership
                    self._note(messages)
                    return messages
            elif positions.errors:
                raise KafkaException(positions.errors.pop(0))
            if time.monotonic() >= deadline:
                return []

    def _note(self, messages: Iterable[Any]) -> None:
        for message in messages:
            place = message.topic(), message.partition()
            self._first.setdefault(place, message.offset())
            self._next[place] = message.offset() + 1


class ExactlyOnce:
    """Transactions of a consumer and a producer of confluent-kafka, one after the other: see `exacta.exactly_once`."""

    def __init__(self, consumer: Any, producer: Any) -> None:
        self._producer = producer
        self._positions = Positions(consumer)
        self._transaction: Transaction | None = None
        self._is_undecided = False

    def __enter__(self) -> Transaction:
        """Begin a transaction."""
        if self._transaction is not None:
            raise RuntimeError("the transaction before is still open: a block cannot stand in another one")
        if self._is_undecided:
            raise RuntimeError("an end was interrupted, so nobody knows how it went: begin again with new clients")
        self._producer.begin_transaction()
        self._transaction = Transaction(self._positions)
        return self._transaction

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Commit; or abort and go back, if the block has raised an error, or the broker does not let it commit."""
        transaction, self._transaction = self._transaction, None
        assert transaction is not None
        transaction._is_open = False
        self._is_undecided = True
        try:
            if error is None:
                self._commit(transaction)
            else:
                self._give_up(transaction)
        except KafkaException as failure:
            if error is None:
                self._is_undecided = False  # if it is fatal, the client says so itself from now on
                raise
            # The block's error tells more than this one, and often has the same reason.
            error.add_note(f"the transaction could not be aborted: {failure}")
        self._is_undecided = False

    def _commit(self, transaction: Transaction) -> None:
        try:
            if transaction._next:
                offsets = [TopicPartition(*place, offset) for place, offset in transaction._next.items()]
                membership = transaction._membership
                _until_answered(lambda: self._producer.send_offsets_to_transaction(offsets, membership, CALL_S))
            _until_answered(lambda: self._producer.commit_transaction(CALL_S))
        except KafkaException as failure:
            cause = failure.args[0]
            if cause.fatal():
                # The commit may have been done, and its answer lost.
                self._positions.go_back(transaction._first, undisturbed=False)
                raise
            self._give_up(transaction)
            if cause.code() not in MENDED_BY_A_REPEAT:
                raise
            logger.info("a transaction was aborted, and its messages come again: %s", cause)
        else:
            transaction.committed = True

    def _give_up(self, transaction: Transaction) -> None:
        """Abort, and let all messages of the transaction come again."""
        undisturbed = False
        try:
            # First, since the group's offsets are not told to anybody while a transaction holds some.
            _until_answered(lambda: self._producer.abort_transaction(CALL_S))
            undisturbed = transaction._membership == self._positions.consumer.consumer_group_metadata()
        finally:
            self._positions.go_back(transaction._first, undisturbed=undisturbed)


def _until_answered(call: Callable[[], object]) -> None:
    """Repeat a call for as long as the client says that its outcome is open, as librdkafka demands."""
    while True:
        try:
            call()
            return
        except (KafkaException, SystemError) as raised:
            failure = _raised_first(raised)
            if not isinstance(failure, KafkaException) or not failure.args[0].retriable():
                raise failure from failure.__cause__
            logger.warning("a transaction waits for its broker: %s", failure.args[0])
        time.sleep(PAUSE_S)


def firsts(messages: Iterable[Any]) -> dict[Place, int]:
    """Return the first offset of each partition of which there are messages."""
    found: dict[Place, int] = {}
    for message in messages:
        found.setdefault((message.topic(), message.partition()), message.offset())
    return found


def _apart(messages: Iterable[Any]) -> tuple[list[Any], list[KafkaError]]:
    """Take messages and errors apart, but for those that need nothing done."""
    records, errors = [], []
    for message in messages:
        error = message.error()
        if error is None:
            records.append(message)
        elif error.code() not in PASSED_OVER:
            errors.append(error)
    return records, errors


def _raised_first(raised: BaseException) -> BaseException:
    """Return what the binding had raised before it went on to call a delivery callback, which Python does not allow."""
    cause: BaseException | None = raised
    while isinstance(cause, SystemError):
        cause = cause.__cause__
    return raised if cause is None else cause
