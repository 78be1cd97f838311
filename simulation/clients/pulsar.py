"""A program of Pulsar's: it writes numbers, consumes them, and sends what comes of each in a transaction.

It speaks in frames, so that the whole front takes part. It has topics and a subscription of its own. A number is sent
until its receipt comes, under a producer's name, so that it is there once. It is consumed until a transaction is
committed that has acknowledged it; an end is asked for until it is answered. In the end a reader looks at the results:
each number has one, of a transaction that was committed.

In some worlds the input is compacted. Each number is the key of its message then, and drafts of numbers come before
them, which compaction may remove. A draft that is seen is acknowledged, and nothing comes of it.
"""

import asyncio
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.message_ids import earliest
from simulation.clients.admin import create
from simulation.clients.connection import Disconnected
from simulation.clients.pulsar_connection import CONSUMER, PRODUCER, PulsarLink, Pushed
from simulation.clients.surroundings import Surroundings
from simulation.network import Network

DRAFT = b"~"
"""A draft of a number begins so."""
ABANDONED, ABORTED = 0.1, 0.2
"""The shares of transactions that nobody ends, and that are aborted."""
LEFT = 4
"""One of this many transactions is left by its client before anything takes part, where few may be open."""
PATIENCE_SECONDS = 2.0
"""So long a consumer waits for a message before it does something else."""
OPEN_SECONDS = 100.0
"""So long a transaction that nobody has ended may hold back what was committed after it, and somewhat longer."""
NOT_FOUND = (pb.ServerError.TransactionNotFound, pb.ServerError.InvalidTxnStatus)


class Pipeline:
    """One instance's topics, and what is known of its numbers."""

    def __init__(
        self, here: Surroundings, network: Network, input_policy: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        chance = here.chance
        self._here = here
        self._source = PulsarLink(here.loop, network, chance, f"{here.writer} source")
        self._worker = PulsarLink(here.loop, network, chance, f"{here.writer} worker")
        name = here.writer.replace("/", "-")
        self._input, self._output = f"{name}-in", f"{name}-out"
        self._input_policy = input_policy
        self._kind: Any = chance.choice(list(pb.CommandSubscribe.SubType.values()))
        self._is_in_order = self._kind in (pb.CommandSubscribe.Exclusive, pb.CommandSubscribe.Failover)
        self._source_is_ready = self._worker_is_ready = False
        self._is_closed_by_abort = False
        """True if an abort of the last transaction gives back what the worker has gone beyond: the broker closes it."""
        self._sequence = 0
        self._messages_sent = 0
        self.sent = 0
        """The numbers below were sent, and their receipts have come."""
        self.attempts = 0
        self.committed: dict[int, int] = {}
        """The number of the attempt that has committed each number."""
        self.in_doubt: set[tuple[int, int]] = set()
        """Numbers and attempts whose outcome the broker has forgotten, or lost, before it was told."""
        self.read: set[int] = set()
        """The attempts of which results were read in the end."""

    def complain(self, what: str) -> None:
        self._here.history.refusals.append(f"Pulsar: {self._here.writer}: {what}")

    @property
    def is_done(self) -> bool:
        doubtful = {number for number, _ in self.in_doubt}
        return all(number in self.committed or number in doubtful for number in range(self.sent))

    def drop(self) -> None:
        """Be gone from the network."""
        self._source.drop()
        self._worker.drop()

    # --- numbers are sent ---------------------------------------------------------------------------------------------

    async def send(self) -> None:
        """Send some numbers, in one entry, until the receipt comes; or drafts of some, where the input is compacted."""
        numbers = [self.sent + more for more in range(self._here.chance.choice([1, 1, 2, 5]))]
        values, keys = [b"%d" % number for number in numbers], []
        if self._input_policy:
            values, numbers = self._with_drafts(values, numbers)
            keys = [each.removeprefix(DRAFT) for each in values]
        while True:
            try:
                if not self._source.is_open:
                    producer = self._source.session.open_producer(self._input, PRODUCER, self._here.writer)
                    await self._source.open(producer)
                receipt = await self._source.produce(values, self._messages_sent, self._here.now_ms(), keys=keys)
            except Disconnected:
                await self._source.back_off()
                continue
            if isinstance(receipt, pb.CommandSendReceipt):
                self.sent += len(numbers)
                self._messages_sent += len(values)
            else:
                self.complain(f"numbers are refused: {receipt.message}")
            return

    def _with_drafts(self, values: list[bytes], numbers: list[int]) -> tuple[list[bytes], list[int]]:
        """Return what is sent, and the numbers in it: drafts alone, or numbers and drafts of those to come."""
        chance = self._here.chance
        if chance.random() < 0.3:
            return [DRAFT + value for value in values], []
        for more in range(chance.choice([0, 1, 2])):
            values.insert(chance.randint(0, len(values)), DRAFT + b"%d" % (numbers[-1] + 1 + more))
        return values, numbers

    async def prepare(self) -> None:
        """Make the input as it is to be, if anything is asked of it; otherwise it is made when it is needed."""
        if self._input_policy:
            await create(self._here, {self._input: 1}, {self._input: self._input_policy})

    # --- and consumed -------------------------------------------------------------------------------------------------

    async def work(self) -> None:
        """Take some messages, and let them be done in a transaction; raise Disconnected."""
        chance, link = self._here.chance, self._worker
        if not link.is_open:
            await link.open(link.session.open_producer(self._output, PRODUCER))
            await self._subscribe(link, self._input, durable=True)
        link.tell(link.session.flow(CONSUMER, chance.choice([1, 3, 20])))
        waited = 0.0
        while not link.pushed and link.is_open and waited < PATIENCE_SECONDS:
            await asyncio.sleep(0.1)
            waited += 0.1
        if not link.pushed:
            return
        dice = chance.random()
        if dice < 0.1:
            self._give_back()
            return
        if dice < 0.15:
            link.drop()
            return
        taken = [link.pushed.popleft() for _ in range(min(len(link.pushed), chance.randint(1, 4)))]
        await self._transform(taken)

    def _give_back(self) -> None:
        """Want everything again, that which waits here included."""
        everything = pb.CommandRedeliverUnacknowledgedMessages(consumer_id=CONSUMER)
        self._worker.tell(self._worker.session.tell(everything))
        if self._is_in_order:
            self._worker.drop()  # what was pushed before cannot be told from what comes again
        else:
            self._worker.pushed.clear()

    async def _subscribe(self, link: PulsarLink, topic: str, *, durable: bool) -> None:
        kind = self._kind if durable else pb.CommandSubscribe.Exclusive
        start = None if durable else earliest()
        await link.open(link.session.subscribe(topic, "s", CONSUMER, kind, durable=durable, start_message_id=start))

    async def _transform(self, taken: list[Pushed]) -> None:
        """Send a result for each message and acknowledge it, in one transaction, and end that."""
        here, link = self._here, self._worker
        self.attempts += 1
        attempt = self.attempts
        begun = await link.ask(link.session.begin(here.timeout_ms))
        if begun.HasField("error"):
            if here.history.few_handles:
                link.drop()  # it comes again
            else:
                self.complain(f"no transaction begins: {begun.message}")
            return
        transaction = begun.txnid_least_bits
        here.history.given_out("transaction", transaction)
        if here.history.few_handles and transaction % LEFT == 0:
            link.drop()
            return
        is_whole = await self._put_in(transaction, taken, attempt)
        dice = here.chance.random()
        if dice < ABANDONED:
            if not self._is_closed_by_abort:
                link.drop()
        elif dice < ABANDONED + ABORTED or not is_whole:
            await self._end(transaction, commit=False)
            if self._is_in_order and not self._is_closed_by_abort:
                link.drop()  # everything comes again, behind what is on its way
            elif not is_whole and link.is_open:
                self._give_back()  # an abort brings back only what the transaction has acknowledged
        else:
            await self._commit(transaction, taken, attempt)

    async def _put_in(self, transaction: int, taken: list[Pushed], attempt: int) -> bool:
        """Return whether all of it is in the transaction."""
        link = self._worker
        self._is_closed_by_abort = False
        for each in taken:
            if each.value.startswith(DRAFT):
                continue
            self._sequence += 1
            value = b"%s:%d" % (each.value, attempt)
            receipt = await link.produce([value], self._sequence, self._here.now_ms(), transaction)
            if not isinstance(receipt, pb.CommandSendReceipt):
                return False
        all_at_once = self._may_acknowledge_all(taken) and self._here.chance.random() < 0.3
        self._is_closed_by_abort = all_at_once
        last = [taken[-1].to_acknowledge_all_up_to]
        for message_id in last if all_at_once else [each.to_acknowledge for each in taken]:
            asked = link.session.acknowledge(CONSUMER, [message_id], cumulative=all_at_once, transaction=transaction)
            if (await link.ask(asked)).HasField("error"):
                self._is_closed_by_abort = False
                return False
        return True

    def _may_acknowledge_all(self, taken: list[Pushed]) -> bool:
        """Return whether nothing before the last of these messages would be left out, and none of them comes after it.

        What an abort has made free comes behind what was on its way.
        """
        if max(taken, key=lambda each: (each.id.entry_id, each.index)) is not taken[-1]:
            return False
        numbers = set(_numbers(taken))
        if numbers & self.committed.keys():
            return False  # it has come twice, and only a single acknowledgement of it conflicts
        last = int(taken[-1].value.removeprefix(DRAFT))
        return self._is_in_order and all(each in self.committed or each in numbers for each in range(last))

    async def _commit(self, transaction: int, taken: list[Pushed], attempt: int) -> None:
        answer, tries = await self._end(transaction, commit=True)
        numbers = _numbers(taken)
        if not answer.HasField("error"):
            self._note_commit(taken, attempt)
        elif answer.error not in NOT_FOUND:
            self.complain(f"the commit of {transaction} is refused: {answer.message}")
        elif tries > 1:
            self.in_doubt |= {(number, attempt) for number in numbers}
        if answer.HasField("error") and self._is_in_order:
            self._worker.drop()

    def _note_commit(self, taken: list[Pushed], attempt: int) -> None:
        for number in _numbers(taken):
            if number in self.committed:
                self.complain(f"{number} was consumed twice: attempts {self.committed[number]} and {attempt}")
            self.committed[number] = attempt

    async def _end(self, transaction: int, *, commit: bool) -> tuple[Any, int]:
        """Ask for an end until it is answered, over whatever connection there is."""
        tries = 0
        while True:
            tries += 1
            link = self._worker if self._worker.is_open else self._source
            try:
                return await link.ask(link.session.end(transaction, commit=commit)), tries
            except Disconnected:
                await link.back_off()

    # --- and looked at in the end -------------------------------------------------------------------------------------

    async def judge(self) -> None:
        """Read the results; complain of what is missing, and of what is there too often, or should not be."""
        results: list[bytes] = []
        until = self._here.loop.time() + OPEN_SECONDS
        while len(results) < len(self.committed) and self._here.loop.time() < until:
            self._worker.drop()
            try:
                results = await self._results()
            except Disconnected:
                await self._worker.back_off()
            await asyncio.sleep(1.0)
        seen: dict[int, int] = {}
        for value in results:
            number, attempt = map(int, value.split(b":"))
            if number in seen:
                self.complain(f"{number} has two results: of attempts {seen[number]} and {attempt}")
            seen[number] = attempt
            self.read.add(attempt)
            if self.committed.get(number) != attempt and (number, attempt) not in self.in_doubt:
                self.complain(f"{number} has a result of attempt {attempt}, which was not committed")
        if missing := [number for number in self.committed if number not in seen]:
            self.complain(f"{missing} were committed, and have no results")

    async def _results(self) -> list[bytes]:
        """Read the output from its beginning to the last message that there is."""
        link = self._worker
        await self._subscribe(link, self._output, durable=False)
        link.tell(link.session.flow(CONSUMER))
        last = await link.last_message_id()
        found: list[bytes] = []
        at = -1
        while last.entry_id < 2**63 and at < last.entry_id:
            if not link.is_open:
                raise Disconnected
            if not link.pushed:
                await asyncio.sleep(0.1)
                continue
            message = link.pushed.popleft()
            at = message.id.entry_id
            found.append(message.value)
        return found


def _numbers(taken: list[Pushed]) -> list[int]:
    return [int(each.value) for each in taken if not each.value.startswith(DRAFT)]


async def pulsar_pipeline(here: Surroundings, network: Network, input_policy: Mapping[str, str]) -> bool:
    """Transform numbers in Pulsar transactions alone."""
    await run(here, Pipeline(here, network, input_policy))
    return False


async def run(here: Surroundings, pipeline: Pipeline) -> None:
    """Send numbers and consume them until the world is over, and then until all are done; judge the results."""
    try:
        await pipeline.prepare()
        while not here.is_over():
            await here.think(0.5)
            if here.chance.random() < 0.4:
                await pipeline.send()
            else:
                await _worked(pipeline)
        while not pipeline.is_done:
            await _worked(pipeline)
        await pipeline.judge()
    finally:
        pipeline.drop()


async def _worked(pipeline: Pipeline) -> None:
    try:
        await pipeline.work()
    except Disconnected:
        await pipeline._worker.back_off()
