"""Message ids as Pulsar's clients know them, and the offsets that they stand for.

Owns the way there and back, which needs no table: in an id, `ledger_id` is the number of the partition's stream, which
is never used again after its topic is gone; `entry_id` is the offset of the entry's first message; and `batch_index`
counts from there. Clients only compare ids, so it does not matter that entry ids have gaps. `entry_id` is a signed
number in Pulsar's clients and an unsigned one on the wire. So an offset may be negative, as a provisional one is.

An *ack set* says which messages of an entry are acknowledged: 64 bits in a word, the lowest bit first, and a bit that
is set means **not** acknowledged. Words at the end that are 0 may be missing. So no word at all means "all of them" in
an acknowledgement. In a MESSAGE it means "none of them": there an entry of which nothing is left is not sent.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from exacta.protocol.pulsar.messages_pb2 import MessageIdData

EARLIEST_NUMBER: Final = 2**64 - 1
"""Ledger and entry of the id before all messages: -1, as clients that have signed numbers write it."""

LATEST_NUMBER: Final = 2**63 - 1
"""Ledger and entry of the id behind all messages."""

NO_BATCH_INDEX: Final = -1

_NUMBERS: Final = 1 << 64

_WORD: Final = 64
_ALL: Final = (1 << _WORD) - 1


def message_id(
    ledger_id: int, entry_offset: int, *, partition: int | None = None, batch_index: int = NO_BATCH_INDEX
) -> MessageIdData:
    """Return the id of an entry, or of one message of a batch; `partition`: see `TopicName.partition`."""
    found = MessageIdData(ledger_id=ledger_id, entry_id=entry_offset % _NUMBERS)
    if partition is not None:
        found.partition = partition
    if batch_index != NO_BATCH_INDEX:
        found.batch_index = batch_index
    return found


def earliest() -> MessageIdData:
    """Return the id before all messages."""
    return message_id(EARLIEST_NUMBER, EARLIEST_NUMBER)


def latest() -> MessageIdData:
    """Return the id behind all messages."""
    return message_id(LATEST_NUMBER, LATEST_NUMBER)


def is_earliest(message: MessageIdData) -> bool:
    """Return whether this is the id before all messages; a negative number on the wire is a very large one here."""
    return message.entry_id > LATEST_NUMBER or message.ledger_id > LATEST_NUMBER


def is_latest(message: MessageIdData) -> bool:
    """Return whether this is the id behind all messages."""
    return message.ledger_id == LATEST_NUMBER and message.entry_id == LATEST_NUMBER


def entry_offset_of(message: MessageIdData) -> int:
    """Return the entry id as clients have it, which may be negative."""
    entry_id: int = message.entry_id
    return entry_id if entry_id <= LATEST_NUMBER else entry_id - _NUMBERS


def offset_of(message: MessageIdData) -> int:
    """Return the offset that an id names: of the entry's first message, if it names the whole entry.

    The ids `earliest()` and `latest()` name no offset; ask `is_earliest` and `is_latest` first.
    """
    return message.entry_id + max(message.batch_index, 0)


def acknowledged(entry_offset: int, message_count: int, words: Sequence[int]) -> list[range]:
    """Return the offsets of an entry that an ack set gives as acknowledged, in order; no words mean all of them.

    Bits of messages that the entry does not have do not matter.
    """
    found: list[range] = []
    for first, end in _cleared(words, message_count):
        if found and found[-1].stop == entry_offset + first:
            found[-1] = range(found[-1].start, entry_offset + end)
        else:
            found.append(range(entry_offset + first, entry_offset + end))
    return found


def least_count(words: Sequence[int]) -> int:
    """Return how many messages an entry has at least for which an acknowledgement gives this ack set.

    It acknowledges one of them, so that the first bit behind the last one that is set counts only if no other does.
    """
    bits = sum((word & _ALL) << _WORD * number for number, word in enumerate(words))
    length = bits.bit_length()
    return length + 1 if bits == (1 << length) - 1 else length


def ack_set(entry_offset: int, message_count: int, acknowledged: Iterable[range]) -> list[int]:
    """Return the words for an entry of which these offsets are acknowledged; offsets outside of it do not matter.

    If none of its messages is acknowledged there are no words, which is what a MESSAGE says then. If all are, the one
    word is 0. Words are signed, as the field is.
    """
    words = [_ALL] * (message_count // _WORD)
    if message_count % _WORD:
        words.append((1 << message_count % _WORD) - 1)
    changed = False
    for offsets in acknowledged:
        first, end = max(offsets.start - entry_offset, 0), min(offsets.stop - entry_offset, message_count)
        if first >= end:
            continue
        changed = True
        for number in range(first // _WORD, -(-end // _WORD)):
            start, stop = max(first - number * _WORD, 0), min(end - number * _WORD, _WORD)
            words[number] &= ~((1 << stop) - (1 << start))
    if not changed:
        return []
    while len(words) > 1 and not words[-1]:
        words.pop()
    return [word - (1 << _WORD) if word >> (_WORD - 1) else word for word in words]


def _cleared(words: Sequence[int], message_count: int) -> Iterator[tuple[int, int]]:
    """Yield the runs of bits that are not set, as first and end; a run may end where a word ends."""
    for number, word in enumerate(words[: -(-message_count // _WORD)]):
        start, bits = number * _WORD, ~word & _ALL
        while bits:
            zeros = (bits & -bits).bit_length() - 1
            bits >>= zeros
            ones = (~bits & bits + 1).bit_length() - 1
            bits >>= ones
            start += zeros
            if start < message_count:
                yield start, min(start + ones, message_count)
            start += ones
    if len(words) * _WORD < message_count:
        yield len(words) * _WORD, message_count
