"""Reading as a consumer does: Fetch, the filter of aborted transactions (KIP-98), and a reader that watches live."""

from typing import Any, NamedTuple

from exacta.protocol.kafka.committed import AbortedTransactions
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages import k01_fetch, k02_list_offsets
from simulation.clients.batches import Batch, read_batches
from simulation.clients.connection import Connection, Disconnected
from simulation.clients.surroundings import Surroundings
from simulation.history import Partition, Place, Poll

EARLIEST, LATEST = -2, -1
_LOOKS = 10
"""A deletion is durable, or its broker is at its end, after as many pauses."""
MAX_BYTES = (200, 1_000, 1 << 20)


class Share(NamedTuple):
    """One partition's part of an answer."""

    place: Place
    error_code: int
    log_start: int
    high_watermark: int
    last_stable: int
    next_offset: int
    records: list[tuple[int, bytes]]
    raw: list[Batch]


def fetch_request(
    positions: dict[Place, int], *, committed: bool, max_bytes: int, max_wait_ms: int
) -> k01_fetch.FetchRequest:
    """Make a Fetch from these positions."""
    topics: dict[str, k01_fetch.FetchTopic] = {}
    for (topic, partition), offset in positions.items():
        entry = k01_fetch.FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes)
        topics.setdefault(topic, k01_fetch.FetchTopic(topic=topic, partitions=[])).partitions.append(entry)
    return k01_fetch.FetchRequest(
        topics=list(topics.values()),
        isolation_level=int(committed),
        max_bytes=max_bytes * 3,
        min_bytes=1,
        max_wait_ms=max_wait_ms,
    )


def shares(answer: Any, positions: dict[Place, int], *, committed: bool) -> list[Share]:
    """Return what an answer says, partition by partition, without aborted records if only committed ones count."""
    found = []
    for topic in answer.responses:
        for data in topic.partitions:
            place = (topic.topic, data.partition_index)
            raw = list(read_batches(data.records))
            position = positions[place]
            records = _committed(raw, data.aborted_transactions or []) if committed else _all(raw)
            end = max((header.last_offset + 1 for header, _, _ in raw), default=position)
            found.append(
                Share(
                    place,
                    data.error_code,
                    data.log_start_offset,
                    data.high_watermark,
                    data.last_stable_offset,
                    max(end, position),
                    [(offset, value) for offset, value in records if offset >= position],
                    raw,
                )
            )
    return found


def _all(raw: list[Batch]) -> list[tuple[int, bytes]]:
    return [each for _, records, _ in raw for each in records]


def _committed(raw: list[Batch], aborted: list[Any]) -> list[tuple[int, bytes]]:
    transactions = AbortedTransactions.of_fetch((entry.producer_id, entry.first_offset) for entry in aborted)
    found: list[tuple[int, bytes]] = []
    for header, records, commits in raw:
        if header.control:
            if not commits:
                transactions.end(header)
        elif not transactions.has(header):
            found += records
    return found


async def bounds(connection: Connection, place: Place) -> tuple[int, int]:
    """Return where a partition begins, and where it ends."""
    found = []
    for timestamp in (EARLIEST, LATEST):
        wanted = k02_list_offsets.ListOffsetsPartition(partition_index=place[1], timestamp=timestamp)
        topic = k02_list_offsets.ListOffsetsTopic(name=place[0], partitions=[wanted])
        request = k02_list_offsets.ListOffsetsRequest(replica_id=-1, topics=[topic])
        found.append((await connection.until_answered(request, 6)).topics[0].partitions[0].offset)
    return found[0], found[1]


async def watch(here: Surroundings) -> bool:
    """Read live, from the beginning, again and again, until the world is over."""
    committed = here.version == 2
    positions = dict.fromkeys(here.places, 0)
    answer_number = 0
    while not here.is_over():
        request = fetch_request(
            positions, committed=committed, max_bytes=here.chance.choice(MAX_BYTES), max_wait_ms=1_000
        )
        try:
            answer = await here.connection.ask(request, 11)
        except Disconnected:
            await here.connection.back_off()
            continue
        answer_number += 1
        for share in shares(answer, positions, committed=committed):
            if share.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                first, end = await bounds(here.connection, share.place)
                if positions[share.place] > end:
                    here.history.refusals.append(f"refused: {here.writer} is beyond the end of {share.place}, {end}")
                positions[share.place] = first
            if share.error_code != ErrorCode.NONE:
                continue
            here.history.polls.append(
                Poll(
                    here.writer,
                    f"{here.writer}#{answer_number}",
                    committed,
                    share.place,
                    positions[share.place],
                    share.next_offset,
                    share.log_start,
                    share.high_watermark,
                    share.last_stable,
                    share.records,
                )
            )
            positions[share.place] = share.next_offset
        if here.chance.random() < 0.05:
            positions = dict.fromkeys(here.places, 0)  # and once more
        await here.think(0.6)
    return False


async def read_everything(here: Surroundings) -> None:
    """Fill in what is there in the end, in both isolations."""
    for place in here.places:
        while not await _read_place(here, place):
            pass


async def _read_place(here: Surroundings, place: Place) -> bool:
    """Read one partition; return whether it began at the same offset all the while: retention goes on."""
    final = here.history.final[place] = Partition()
    final.log_start, _ = await bounds(here.connection, place)
    for committed in (False, True):
        position = final.log_start
        while True:
            request = fetch_request({place: position}, committed=committed, max_bytes=1 << 20, max_wait_ms=0)
            try:
                answer = await here.connection.ask(request, 11)
            except Disconnected:
                await here.connection.back_off()
                continue
            (share,) = shares(answer, {place: position}, committed=committed)
            if share.log_start > final.log_start:
                return False
            is_short = share.next_offset == position != (share.last_stable if committed else share.high_watermark)
            if (is_short or share.error_code) and await _is_being_deleted(here, place, final.log_start):
                return False
            if share.error_code != ErrorCode.NONE:
                name = ErrorCode(share.error_code).name
                here.history.refusals.append(f"refused: reading {place} at the end: {name}")
                break
            if committed:
                final.committed.update(share.records)
            else:
                _note(final, share, position)
            if is_short:
                end = share.last_stable if committed else share.high_watermark
                here.history.refusals.append(f"refused: {place} ends at {end}, read up to {position}")
            if share.next_offset == position:
                break
            position = share.next_offset
    return (await bounds(here.connection, place))[0] == final.log_start


async def _is_being_deleted(here: Surroundings, place: Place, log_start: int) -> bool:
    """Return whether the beginning moves: until that is durable, a Fetch below it is answered with nothing."""
    for _ in range(_LOOKS):
        if (await bounds(here.connection, place))[0] > log_start:
            return True
        await here.connection.back_off()
    return False


def _note(final: Partition, share: Share, position: int) -> None:
    for header, records, _ in share.raw:
        if header.control:
            final.markers.append((header.base_offset, header.producer_id))
        final.records += [(offset, value, header.producer_id) for offset, value in records if offset >= position]
