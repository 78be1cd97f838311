"""A program of Pulsar's that writes into the topics of Kafka's clients, and reads them as Pulsar's readers do.

It sends entries plainly, under a producer's name, so that a repeat is stored once; and in transactions of Pulsar's over
several partitions. Its messages have the keys that Kafka's records have in a compacted topic, tombstones included. What
it has written and read is in the history, and is judged like the work of every other client.
"""

from typing import Any

from exacta.core.log.staging import FIRST_PROVISIONAL_OFFSET
from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.message_ids import entry_offset_of
from simulation.clients.admin import TOPICS
from simulation.clients.connection import Disconnected
from simulation.clients.messages import entry
from simulation.clients.pulsar import ABANDONED, ABORTED, NOT_FOUND
from simulation.clients.pulsar_connection import PRODUCER, PulsarLink
from simulation.clients.pulsar_reading import poll_by_pulsar, pulsar_name
from simulation.clients.surroundings import Surroundings
from simulation.clients.transfers import values_for
from simulation.history import Outcome, Place, Writing
from simulation.network import Network


class _Messages:
    """One instance: a connection for each partition that it writes into, and one for all else."""

    def __init__(self, here: Surroundings, network: Network) -> None:
        self._here = here
        self._links = {
            place: PulsarLink(here.loop, network, here.chance, f"{here.writer} {place[0]} {place[1]}")
            for place in here.places
        }
        self._other = PulsarLink(here.loop, network, here.chance, f"{here.writer} other")
        self._sequences = dict.fromkeys(here.places, 0)
        self._writings = 0
        self._reads = 0

    def drop(self) -> None:
        """Be gone from the network."""
        for link in (*self._links.values(), self._other):
            link.drop()

    def _begin(self, outcome: Outcome) -> Writing:
        self._writings += 1
        return self._here.history.begin(f"{self._here.writer}.{self._writings}", outcome)

    # --- writing ------------------------------------------------------------------------------------------------------

    async def send(self) -> None:
        """Send an entry, as often as it takes until its receipt comes."""
        place = self._here.chance.choice(self._here.places)
        writing = self._begin(Outcome.PLAIN)
        values, sequence = self._drawn(writing, place)
        data = entry(values, self._here.chance, self._name(place), sequence, self._here.now_ms())
        while True:
            try:
                receipt = await self._sent(place, data, len(values), sequence)
            except Disconnected:
                await self._links[place].back_off()
                continue
            if isinstance(receipt, pb.CommandSendReceipt):
                self._acknowledged(writing, values, receipt)
            else:
                self._refused(f"{writing.name} to {place}: {receipt.message}")
            return

    async def transact(self) -> None:
        """Send entries into some partitions in one transaction, and end it; raise Disconnected."""
        here, chance = self._here, self._here.chance
        begun = await self._other.ask(self._other.session.begin(here.timeout_ms))
        if begun.HasField("error"):
            if not here.history.few_handles:
                self._refused(f"no transaction begins: {begun.message}")
            return
        transaction = begun.txnid_least_bits
        here.history.given_out("transaction", transaction)
        writing = self._begin(Outcome.NO_COMMIT)
        is_whole = True
        for place in chance.sample(here.places, chance.randint(1, min(3, len(here.places)))):
            is_whole = is_whole and await self._send_in(transaction, writing, place)
        dice = chance.random()
        if dice < ABANDONED:
            return
        commit = is_whole and dice >= ABANDONED + ABORTED
        writing.outcome = Outcome.UNKNOWN if commit else Outcome.NO_COMMIT
        answer, tries = await self._end(transaction, commit=commit)
        if not answer.HasField("error"):
            writing.outcome = Outcome.COMMITTED if commit else Outcome.NO_COMMIT
        elif answer.error not in NOT_FOUND:
            self._refused(f"the end of {transaction}: {answer.message}")
        elif tries == 1:
            writing.outcome = Outcome.NO_COMMIT  # its time was over before, or a loss has aborted it

    async def _send_in(self, transaction: int, writing: Writing, place: Place) -> bool:
        """Send an entry in a transaction; return whether it is there."""
        values, sequence = self._drawn(writing, place)
        data = entry(values, self._here.chance, self._name(place), sequence, self._here.now_ms())
        try:
            receipt = await self._sent(place, data, len(values), sequence, transaction)
        except Disconnected:
            return False
        if isinstance(receipt, pb.CommandSendReceipt):
            self._acknowledged(writing, values, receipt)
        return isinstance(receipt, pb.CommandSendReceipt)

    def _drawn(self, writing: Writing, place: Place) -> tuple[list[bytes], int]:
        count = self._here.chance.choice([1, 1, 2, 3, 5])
        values = values_for(self._here, writing, place, len(writing.values), count)
        writing.values.update(dict.fromkeys(values, place))
        sequence = self._sequences[place]
        self._sequences[place] += count
        return values, sequence

    async def _sent(self, place: Place, data: bytes, count: int, sequence: int, transaction: int | None = None) -> Any:
        link = self._links[place]
        if not link.is_open:
            topic = pulsar_name(place, TOPICS[place[0]])
            await link.open(link.session.open_producer(topic, PRODUCER, self._name(place)))
        return await link.produce_entry(data, count, sequence, transaction)

    def _name(self, place: Place) -> str:
        return f"{self._here.writer} {place[0]} {place[1]}"

    @staticmethod
    def _acknowledged(writing: Writing, values: list[bytes], receipt: pb.CommandSendReceipt) -> None:
        base = entry_offset_of(receipt.message_id)
        if base == -1:  # a repeat is not told where it lies
            return
        if base < 0:  # every second number is a staged entry's
            base = FIRST_PROVISIONAL_OFFSET + (base - FIRST_PROVISIONAL_OFFSET) // 2
        writing.acknowledged.update({value: base + index for index, value in enumerate(values)})

    async def _end(self, transaction: int, *, commit: bool) -> tuple[Any, int]:
        """Ask for an end until it is answered; return the answer, and how often it was asked for."""
        tries = 0
        while True:
            tries += 1
            try:
                return await self._other.ask(self._other.session.end(transaction, commit=commit)), tries
            except Disconnected:
                await self._other.back_off()

    def _refused(self, what: str) -> None:
        self._here.history.refusals.append(f"refused: {self._here.writer}: {what}")

    # --- reading ------------------------------------------------------------------------------------------------------

    async def read(self) -> None:
        """Read a partition; raise Disconnected."""
        here = self._here
        self._reads += 1
        answer = f"{here.writer} reader#{self._reads}"
        poll, _ = await poll_by_pulsar(here, self._other, here.chance.choice(here.places), answer)
        here.history.polls.append(poll)


async def keyed_messages(here: Surroundings, network: Network) -> bool:
    """Write and read until the world is over."""
    messages = _Messages(here, network)
    try:
        while not here.is_over():
            await here.think(0.7)
            dice = here.chance.random()
            try:
                if dice < 0.4:
                    await messages.send()
                elif dice < 0.8:
                    await messages.transact()
                else:
                    await messages.read()
            except Disconnected:
                await here.connection.back_off()
    finally:
        messages.drop()
    return False
