"""A program that copies a file to a Pulsar topic: the sequence ids of its producer are the positions in the file.

It has a name, so that each number of the file is stored once and in order, whatever happens to it: it sends several
entries before the first one is answered, makes other batches of what it sends again, and sends large messages in parts.
Its topic has a quota in most worlds, so that some of its entries are refused while others are on their way. A consumer
reads the copy meanwhile, and says so if a number is missing, comes twice, or is not whole.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from exacta.protocol.pulsar import messages_pb2 as pb
from simulation.clients.admin import create
from simulation.clients.connection import Disconnected
from simulation.clients.pulsar_connection import CONSUMER, PRODUCER, PulsarLink, Pushed
from simulation.clients.surroundings import Surroundings
from simulation.network import Network
from simulation.policies import HOLD, REFUSE

PARTLY_STORED = "some messages of the batch are stored already"
LARGE = 0.15
"""The share of messages that are sent in parts."""
READ_SECONDS = 1.0
"""So long a consumer waits for what comes next."""


def draw_quota(chance: random.Random) -> dict[str, str]:
    """Say how much of a copy may be kept for its consumer; nothing is kept for anybody else."""
    if chance.random() < 0.25:
        return {}
    return {
        "cleanup.policy": "delete",
        "message.timestamp.type": "LogAppendTime",
        "retention.ms": "1",
        "pulsar.backlog.quota.policy": chance.choice([HOLD, REFUSE]),
        "pulsar.backlog.quota.bytes": chance.choice(["0", "100", "300", "1000"]),
    }


class _Copy:
    """One instance's topic, and how far it has come."""

    def __init__(self, here: Surroundings, network: Network) -> None:
        self._here = here
        self._writer = PulsarLink(here.loop, network, here.chance, f"{here.writer} writer")
        self._reader = PulsarLink(here.loop, network, here.chance, f"{here.writer} reader")
        self.topic = f"{here.writer.replace('/', '-')}-copy"
        self.stored = 0
        """The numbers below are stored: their receipts have come."""
        self._sent = 0
        """The numbers below were sent."""
        self.read = 0
        """The numbers below were read."""
        self.is_subscribed = False
        """True once everything is kept that the consumer has not acknowledged."""
        self._last_offset = -1
        self._parts: list[int] = []

    def drop(self) -> None:
        """Be gone from the network."""
        self._writer.drop()
        self._reader.drop()

    def complain(self, what: str) -> None:
        self._here.history.refusals.append(f"Pulsar: {self._here.writer}: {what}")

    # --- writing ------------------------------------------------------------------------------------------------------

    async def write(self) -> None:
        """Send on from the first number of which it is not known that it is stored; raise Disconnected."""
        if not self._writer.is_open:
            await self._open()
        if self._here.chance.random() < LARGE:
            await self._write_large()
        elif self.stored < self._sent:
            await self._write_again()
        else:
            await self._write_ahead()

    async def _open(self) -> None:
        answer = await self._writer.open(self._writer.session.open_producer(self.topic, PRODUCER, self._here.writer))
        if not self.stored - 1 <= answer.last_sequence_id < self._sent:
            self.complain(f"is told to go on after {answer.last_sequence_id}, and not after {self.stored - 1}")

    async def _write_large(self) -> None:
        """Send one number in parts; it counts with the last one."""
        count = self._here.chance.choice([2, 3])
        self._sent = max(self._sent, self.stored + 1)
        for part in range(count):
            await self._produced(self.stored, 1, (part, count))
        self.stored += 1

    async def _write_again(self) -> None:
        """Send a batch of what may be stored; where a part of it is, send its first number alone."""
        count = self._here.chance.choice([1, 2, 3])
        self._sent = max(self._sent, self.stored + count)
        if not await self._produced(self.stored, count):
            count = 1
            await self._produced(self.stored, count)
        self.stored += count

    async def _write_ahead(self) -> None:
        """Send several batches one after the other, without a wait for the receipts."""
        waiting = []
        for _ in range(self._here.chance.choice([1, 3, 6])):
            count = self._here.chance.choice([1, 1, 2, 3])
            waiting.append(asyncio.ensure_future(self._produced(self._sent, count)))
            self._sent += count
            await asyncio.sleep(self._here.chance.choice([0.0, 0.0, 0.02, 0.3]))
            if not self._writer.is_open:
                break
        found = await asyncio.gather(*waiting, return_exceptions=True)
        for each in found:
            if isinstance(each, BaseException):
                raise each
        self.stored = self._sent

    async def _produced(self, first: int, count: int, part: tuple[int, int] | None = None) -> bool:
        """Return whether the receipt of a batch has come, and not the answer that a part of it is stored."""
        values = [b"%d" % number for number in range(first, first + count)]
        receipt: Any = await self._writer.produce(values, first, self._here.now_ms(), part=part)
        if isinstance(receipt, pb.CommandSendReceipt):
            return True
        if count == 1 or not receipt.message.startswith(PARTLY_STORED):
            self.complain(f"{count} numbers from {first} on are refused: {receipt.message}")
        return False

    # --- reading ------------------------------------------------------------------------------------------------------

    async def look(self) -> None:
        """Read what comes, and acknowledge it, or let it be a burden; raise Disconnected."""
        link = self._reader
        if not link.is_open:
            await link.open(link.session.subscribe(self.topic, "reader", CONSUMER, durable=True))
            self.is_subscribed = True
            link.tell(link.session.flow(CONSUMER))
        until, last = self._here.loop.time() + READ_SECONDS, None
        while link.is_open and (link.pushed or self._here.loop.time() < until):
            if link.pushed:
                last = link.pushed.popleft()
                self._take(last)
            else:
                await asyncio.sleep(0.1)
        if last is not None and link.is_open and self._here.chance.random() < 0.7:
            ids = [last.to_acknowledge_all_up_to]
            link.tell(link.session.acknowledge(CONSUMER, ids, cumulative=True, answered=False))

    def _take(self, message: Pushed) -> None:
        """Look at a message, if it has not come before."""
        offset = message.id.entry_id + message.index
        if offset <= self._last_offset:
            return
        self._last_offset = offset
        metadata = message.metadata
        if isinstance(metadata, pb.MessageMetadata) and metadata.num_chunks_from_msg > 1:
            part, count = metadata.chunk_id, metadata.num_chunks_from_msg
            self._parts = [*self._parts, part] if part else [part]
            if part < count - 1:
                return
            if self._parts != list(range(count)):
                self.complain(f"{message.value!r} lacks a part: there are {self._parts} of {count}")
        if int(message.value) != self.read:
            self.complain(f"{message.value!r} is at {offset}, where {self.read} was next")
        self.read = int(message.value) + 1


async def copying(here: Surroundings, network: Network, quota: Mapping[str, str]) -> bool:
    """Copy until the world is over, and read to the end of what is stored."""
    copy = _Copy(here, network)

    async def write() -> None:
        while not here.is_over():
            await here.think(0.3)
            if copy.is_subscribed:
                await _tried(here, copy.write)

    async def read() -> None:
        while not here.is_over() or copy.read < copy.stored:
            await here.think(0.3)
            await _tried(here, copy.look)

    try:
        await create(here, {copy.topic: 1}, {copy.topic: quota})
        await asyncio.gather(write(), read())
    finally:
        copy.drop()
    return False


async def _tried(here: Surroundings, step: Callable[[], Awaitable[None]]) -> None:
    try:
        await step()
    except Disconnected:
        await here.connection.back_off()
