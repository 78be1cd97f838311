"""Convert what a Kafka client reads of a log that has batches of Pulsar's among its own."""

from collections.abc import Sequence

from exacta.core.ids import Body
from exacta.ports.record_format import Buffer
from exacta.protocol.kafka.records import parse_batch_header
from exacta.records.admission import MAX_DECOMPRESSED_BYTES
from exacta.records.conversion.into_kafka import to_kafka


def converted(buffers: Sequence[Buffer], room: int, *, zstd: bool) -> list[Buffer]:
    """Return whole batches of magic 2 from the first one on, as many as fit into `room` bytes, but at least one.

    Kafka's own batches are views of the buffers. Without `zstd` no converted batch is compressed by it.
    """
    found: list[Buffer] = []
    size = 0
    for buffer in buffers:
        view, start, own = memoryview(buffer), 0, 0
        while start < len(view):
            header = parse_batch_header(view, start)
            end = start + header.size
            is_own = header.magic == Body.KAFKA
            piece: Buffer = view[start:end]
            if not is_own:
                piece = to_kafka(piece, allowed_bytes=MAX_DECOMPRESSED_BYTES, zstd=zstd)
            is_full = size > 0 and size + len(piece) > room
            if own < start and (not is_own or is_full):
                found.append(view[own:start])
            if is_full:
                return found
            if not is_own:
                found.append(piece)
                own = end
            size += len(piece)
            start = end
        if own < start:
            found.append(view[own:start])
    return found
