"""Convert what a Kafka client reads of a log that has batches of Pulsar's among its own."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from exacta.core.ids import Body
from exacta.ports.record_format import Buffer
from exacta.protocol.kafka.records import HEADER_SIZE, BatchHeader, parse_batch_header
from exacta.protocol.pulsar.entries import parse_body
from exacta.protocol.pulsar.errors import BrokenEntry
from exacta.records.admission import MAX_DECOMPRESSED_BYTES
from exacta.records.conversion.into_kafka import to_kafka


class ConversionRoom(NamedTuple):
    """The room for converted batches, in bytes: for all of them, and for the first one, which may need more."""

    most_bytes: int
    most_of_first: int


def converted(buffers: Sequence[Buffer], room: ConversionRoom, *, zstd: bool) -> list[Buffer]:
    """Return whole batches of magic 2 from the first one on, as many as have room.

    Kafka's own batches are views of the buffers. Without `zstd` no converted batch is compressed by it.
    """
    found: list[Buffer] = []
    size = 0
    for buffer in buffers:
        view, own = memoryview(buffer), 0
        for header, start, end in _batches(view):
            is_own = header.magic == Body.KAFKA
            piece: Buffer = view[start:end]
            if not is_own:
                piece = to_kafka(piece, allowed_bytes=MAX_DECOMPRESSED_BYTES, zstd=zstd)
            is_full = size + len(piece) > (room.most_bytes if size else room.most_of_first)
            if own < start and (not is_own or is_full):
                found.append(view[own:start])
            if is_full:
                return found
            if not is_own:
                found.append(piece)
                own = end
            size += len(piece)
        if own < len(view):
            found.append(view[own:])
    return found


def all_converted(shares: Sequence[tuple[Sequence[Buffer], int]], *, zstd: bool) -> list[list[Buffer]]:
    """Return what comes of the batches of several partitions, each with the room for it, in bytes.

    The first batch of a partition may take what the others leave, and the first one of all may take any room. So an
    answer is longer than all the rooms by one batch at most. A partition without room has its turn in another answer.
    """
    left = sum(room for _, room in shares)
    found: list[list[Buffer]] = []
    for buffers, room in shares:
        most_of_first = left if any(found) else _ANY
        batches = converted(buffers, ConversionRoom(min(room, left), most_of_first), zstd=zstd) if left > 0 else []
        left -= sum(map(len, batches))
        found.append(batches)
    return found


_ANY = 1 << 62


def plain_bytes(buffers: Sequence[Buffer]) -> int:
    """Return how many bytes are to be read of Pulsar's batches, decompressed: as many as they say, or fewer."""
    return sum(_said_bytes(memoryview(buffer)) for buffer in buffers)


def _said_bytes(view: memoryview) -> int:
    size = len(view)
    for header, start, end in _batches(view):
        if header.magic != Body.KAFKA:
            try:
                entry = parse_body(view[start + HEADER_SIZE : end])
            except BrokenEntry:
                continue
            size += entry.metadata.uncompressed_size if entry.is_compressed else 0
    return size


def _batches(view: memoryview) -> Iterator[tuple[BatchHeader, int, int]]:
    """Yield the header of each batch, and where the batch begins and ends."""
    start = 0
    while start < len(view):
        header = parse_batch_header(view, start)
        yield header, start, start + header.size
        start += header.size
