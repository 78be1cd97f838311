"""The SENDs of one connection: gathered into one step of the log, and answered in their order.

Owns what an entry is checked for, how it becomes a command of the core, and the order of receipts. A client takes a
receipt as the one for its oldest message without a receipt, so the receipts of a connection leave in the order of its
SENDs, even if the core could answer a later one sooner. The id of a staged entry is provisional (`provisional_ids.py`).

Theory of operation. A long batch for a compacted topic is looked at on a thread, and the connection's next commands
wait for it. `take` gathers; `flush` appends all that has come in this turn of the loop by one submit. Every
other command flushes first, so that it sees what was sent before it. The core decides what is a repeat
(`core.log.repeats`), and is told what the command and the entry say of it.

A partition that takes no entries now closes its producers, as Apache Pulsar does: PRODUCER then tells each of them why.
The core sees to it that none of a producer's later messages is stored before the one that was refused
(`core.log.closing`), so that a producer is closed here when the refusal is answered.
"""

from collections import deque
from contextlib import suppress

from google.protobuf.message import Message
from msgspec import Struct

from exacta.config.topic import MAX_MESSAGE_BYTES
from exacta.core.commands import AppendBatch, Command
from exacta.core.ids import NO_PRODUCER_ID, Body, PrincipalName, ProducerId, TransactionId
from exacta.core.rejections import Rejection
from exacta.core.replies import AlreadyStored, Appended
from exacta.core.writers import NamedWriter, NamelessWriter
from exacta.front.broker import Broker
from exacta.front.transaction_rights import lacking_for
from exacta.front.turns import Steps
from exacta.front.words import words_of
from exacta.ports.log import Answer
from exacta.ports.record_format import Buffer
from exacta.protocol.pulsar.commands import NO_REQUEST
from exacta.protocol.pulsar.entries import MOST_MESSAGES, Entry, check_entry, parse_entry
from exacta.protocol.pulsar.errors import BrokenEntry
from exacta.protocol.pulsar.frames import build_frame
from exacta.protocol.pulsar.message_ids import EARLIEST_NUMBER, message_id
from exacta.protocol.pulsar.messages_pb2 import (
    CommandCloseProducer,
    CommandSend,
    CommandSendError,
    CommandSendReceipt,
    ServerError,
)
from exacta.protocol.pulsar.transaction_ids import txn_id_of_part
from exacta.pulsar import provisional_ids
from exacta.pulsar.context import PulsarConnection, PulsarRequest, RequestGroup
from exacta.pulsar.errors import send_error
from exacta.pulsar.producers import MOST_PRODUCERS, Producer, ProducerOwner, Producers
from exacta.pulsar.transactions import transaction_of
from exacta.records.pulsar_admission import admit_entry, is_long, require_keys

MOST_SEQUENCE = 2**63 - 1
MOST_WALKED = 5_000
"""A batch of more messages is walked over on a thread. Clients put at most a thousand into one by default."""
LEAST_BYTES = 4
"""The fewest bytes of a message in a batch."""
_CLOSING = frozenset(
    {
        Rejection.UNKNOWN_TOPIC_OR_PARTITION,
        Rejection.WRITER_CLOSED,
        Rejection.DISK_FULL,
        Rejection.BACKLOG_HOLDS_PRODUCERS,
        Rejection.BACKLOG_QUOTA_EXCEEDED,
    }
)
"""The rejections that close a producer: its client opens it again, or is told why not."""
CPP_CLIENT = "Pulsar-CPP-"
"""The names of the client for C++, and of those made from it (Python and others), begin so."""


class Send(Struct, eq=False):
    """One SEND; `answer` is None until it is known, and empty where the client waits for none any more."""

    request: PulsarRequest
    producer: Producer
    command: CommandSend
    answer: list[Buffer] | None = None
    entry: Entry | None = None
    """The entry, where it was read before the SEND was gathered."""
    is_checked: bool = False
    """True: a thread has seen that the entry is what it says."""
    has_keys: bool = False
    """True: a thread has seen that each message has a key."""

    def refuse(self, error: ServerError, text: str) -> None:
        """Answer with an error."""
        self.answer = [
            build_frame(
                CommandSendError(
                    producer_id=self.producer.number, sequence_id=self.command.sequence_id, error=error, message=text
                )
            )
        ]

    def receipt(self, base_offset: int | None) -> None:
        """Answer that the entry is stored, or staged; None: nobody remembers at which offset."""
        command = self.command
        receipt = CommandSendReceipt(producer_id=self.producer.number, sequence_id=command.sequence_id)
        if command.HasField("highest_sequence_id"):
            receipt.highest_sequence_id = command.highest_sequence_id
        if base_offset is None:
            found = message_id(EARLIEST_NUMBER, EARLIEST_NUMBER)
        else:
            entry_id = base_offset if base_offset >= 0 else provisional_ids.entry_id(base_offset)
            found = message_id(self.producer.partition_id, entry_id, partition=self.producer.topic.partition)
        receipt.message_id.CopyFrom(found)
        self.answer = [build_frame(receipt)]


class Sends:
    """The SENDs of one connection."""

    def __init__(self, broker: Broker, connection: PulsarConnection) -> None:
        self._broker = broker
        self._connection = connection
        self._gathered: list[Send] = []
        self._unanswered: deque[Send] = deque()

    def take(self, request: PulsarRequest, producer: Producer, command: CommandSend) -> bool:
        """Gather a SEND; return whether it is the first one, so that somebody must flush."""
        send = Send(request, producer, command)
        self._unanswered.append(send)
        if self._is_long(send):
            self.flush()
            request.in_steps(self._check(send))
            return False
        self._gathered.append(send)
        return len(self._gathered) == 1

    def _is_long(self, send: Send) -> bool:
        """Return whether the messages of a SEND must be looked at on a thread."""
        rules, entry, command = self._broker.batch_rules(send.producer.place[0]), send.request.entry, send.command
        if rules is None or entry is None:
            return False
        said = command.num_messages if command.HasField("num_messages") else MOST_MESSAGES
        may_be_many = said > MOST_WALKED and len(entry) > LEAST_BYTES * MOST_WALKED
        if not (rules.needs_keys or may_be_many):
            return False
        with suppress(BrokenEntry):  # which is refused in its turn
            send.entry = parse_entry(entry)
        if send.entry is None:
            return False
        return send.entry.message_count > MOST_WALKED or (rules.needs_keys and is_long(send.entry))

    def _check(self, send: Send) -> Steps:
        """Look at the messages on a thread. Then append the SEND, alone, by what holds of its topic in that step."""
        entry, command, rules = send.entry, send.command, self._broker.batch_rules(send.producer.place[0])
        assert entry is not None
        looks_at_keys = rules is not None and rules.needs_keys

        def check() -> None:
            check_entry(entry, command)
            if looks_at_keys:
                require_keys(entry)

        found = yield check
        if isinstance(found, BrokenEntry):
            send.refuse(self._giving_up(found.error), str(found))
            self._leave()
        elif isinstance(found, Exception):
            raise found
        else:
            send.is_checked, send.has_keys = True, looks_at_keys
            self._gathered.append(send)
            self.flush()

    def flush(self) -> None:
        """Append what was gathered; drop it if nobody can be told, since the engine may take no commands any more."""
        if not self._gathered:
            return
        sends, self._gathered = self._gathered, []
        if self._connection.has_ended:
            self._drop(sends)
            return
        group = RequestGroup(self._connection, [send.request for send in sends], lambda: self._drop(sends))
        try:
            self._append(group, sends)
        except Exception:  # noqa: BLE001  # a bug in one front must not end the server
            group.fail()

    def _drop(self, sends: list[Send]) -> None:
        """Let nobody wait for what is known of these any more, since the connection is closed."""
        for send in sends:
            send.answer = send.answer or []
        self._leave()

    def _append(self, group: RequestGroup, sends: list[Send]) -> None:
        commands: list[Command] = []
        payloads: list[Buffer | None] = []
        asked: list[Send] = []
        now_ms = self._broker.wall_ms()
        for send in sends:
            try:
                found = self._command(send, now_ms)
            except BrokenEntry as broken:
                send.refuse(self._giving_up(broken.error), str(broken))
                continue
            if found is not None:
                commands.append(found[0])
                payloads.append(found[1])
                asked.append(send)

        def done(answers: list[Answer]) -> None:
            for send, answer in zip(asked, answers, strict=True):
                self._take_answer(send, answer)
            self._leave()

        if commands:
            self._broker.submit(group, commands, done, payloads)
        else:  # refused by a state that may not be durable yet
            self._broker.when_durable(group, self._leave)

    def _giving_up(self, error: ServerError) -> ServerError:
        """Return the error by which the client gives up a message that will never be taken.

        The client for C++ does so for one error only. For any other one it connects again and sends the message again,
        without end: its time-out begins again with each connection. It writes the text of the error to its log.
        """
        return ServerError.ChecksumError if self._connection.client_version.startswith(CPP_CLIENT) else error

    def _command(self, send: Send, now_ms: int) -> tuple[AppendBatch, bytes] | None:
        """Return the command and the bytes to be kept; None where the answer is known. Raises `BrokenEntry`."""
        producer, command = send.producer, send.command
        if self._connection.producers.get(producer.number) is not producer:
            send.answer = []  # closed by what came before it in this turn: its client sends again
            return None
        topic, partition = producer.place
        rules = self._broker.batch_rules(topic)
        if rules is None:  # the topic is gone, and so is what would say how an entry is kept
            self._close(send)
            return None
        assert send.request.entry is not None
        entry = parse_entry(send.request.entry) if send.entry is None else send.entry
        if not send.is_checked:
            check_entry(entry, command)
        transaction, producer_id = self._transaction(send)
        kept, time_ms = admit_entry(
            entry, rules, now_ms, self._largest_payload(topic), producer_id, has_keys=send.has_keys
        )
        send.request.entry = send.entry = None  # what is kept is a copy, and one of the two is enough
        append = AppendBatch(
            topic=topic,
            partition=partition,
            partition_id=producer.partition_id,
            closings=producer.closings,
            record_count=entry.message_count,
            size=len(kept),
            max_timestamp_ms=time_ms,
            body=Body.PULSAR,
            writer=_writer(producer, command, entry, self._connection.principal.durable_name),
            transaction=transaction,
            handle_producer_id=producer_id,
            takes_append_time=rules.log_append_time,
        )
        return append, kept

    def _largest_payload(self, topic: str) -> int:
        """Return how many bytes the payload of an entry may have; it says so itself, or the broker's option does."""
        own = (self._broker.topic_configs(topic) or {}).get(MAX_MESSAGE_BYTES)
        return self._broker.configuration.pulsar_max_message_size if own is None else int(own)

    def _transaction(self, send: Send) -> tuple[TransactionId | None, ProducerId]:
        """Return the transaction of a SEND and the producer id of its records. Raises `BrokenEntry`."""
        txn_id = txn_id_of_part(send.command)
        if txn_id is None:
            return None, NO_PRODUCER_ID
        transaction_id = transaction_of(txn_id)
        if transaction_id is None:
            raise BrokenEntry(words_of(Rejection.TRANSACTION_NOT_FOUND))
        lack = lacking_for(self._broker, send.request, transaction_id)
        if lack is not None:
            raise BrokenEntry(lack)
        # The core refuses what is sent to one that is not open, and bytes without the producer id of an open one.
        producer_id = self._broker.engine.advice.handle_producer_id(transaction_id)
        return transaction_id, NO_PRODUCER_ID if producer_id is None else producer_id

    def _take_answer(self, send: Send, answer: Answer) -> None:
        if isinstance(answer, Appended):
            send.receipt(answer.base_offset)
        elif isinstance(answer, AlreadyStored):
            send.receipt(None)
        elif answer in _CLOSING:
            self._close(send)
        else:
            assert isinstance(answer, Rejection)
            error = send_error(answer)
            send.refuse(self._giving_up(error) if answer is Rejection.PARTLY_STORED else error, words_of(answer))

    def _close(self, send: Send) -> None:
        """Close a producer whose topic is gone or takes nothing: its client opens it again, or is told why not.

        The receipts of what came before it leave first, or its client would send that again.
        """
        send.answer = []
        self._leave()
        close_producer(self._connection.shared.producers, self._connection, send.producer)

    def _leave(self) -> None:
        """Let the receipts leave that are next."""
        unanswered = self._unanswered
        while unanswered and (answer := unanswered[0].answer) is not None:
            unanswered.popleft().request.end(answer)


def close_producer(producers: Producers, connection: ProducerOwner, producer: Producer) -> None:
    """Close a producer from this side, and tell its client."""
    if connection.producers.get(producer.number) is producer:
        del connection.producers[producer.number]
        if len(connection.closed_producers) >= MOST_PRODUCERS:
            connection.closed_producers.clear()
        connection.closed_producers.add(producer.number)
        producers.close(producer)
        message: Message = CommandCloseProducer(producer_id=producer.number, request_id=NO_REQUEST)
        connection.push([build_frame(message)])


def _writer(
    producer: Producer, command: CommandSend, entry: Entry, principal: PrincipalName
) -> NamedWriter | NamelessWriter | None:
    """Return the writer of a SEND, by which the core tells repeats. Raises `BrokenEntry`."""
    last_sequence = max(command.sequence_id, command.highest_sequence_id)
    is_part = entry.is_chunk and not _is_last_chunk(entry)
    if producer.is_named:
        if last_sequence > MOST_SEQUENCE:
            raise BrokenEntry(f"the sequence id {last_sequence} is beyond 2**63 - 1")
        first_sequence = command.sequence_id
        return NamedWriter(
            name=producer.name,
            first_sequence=first_sequence,
            last_sequence=last_sequence,
            is_part=is_part,
            principal=principal,
        )
    if last_sequence > MOST_SEQUENCE:  # its user may give any, and the log cannot remember this one
        return None
    number, is_back = producer.writer_id, producer.is_back
    return NamelessWriter(number=number, sequence=last_sequence, is_back=is_back, is_part=is_part)


def _is_last_chunk(entry: Entry) -> bool:
    """Return whether a large message ends here."""
    return entry.metadata.chunk_id == entry.metadata.num_chunks_from_msg - 1
