"""A program over both protocols: each transaction consumes numbers from Pulsar, and writes by Pulsar and by Kafka.

It is the program of `pulsar.py` with a transactional Kafka producer beside it. A transaction is begun by either
side and named to the other one, and ended by either, or by both at once, of one mind or not. Kafka's side sometimes
writes after the end, which must be refused. In the end `history.joint` says of which transactions Pulsar's results are
there, and the analysis compares what Kafka's readers got.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any

from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k24_add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from exacta.protocol.kafka.messages.k17790_join_transaction import JoinTransactionRequest
from exacta.protocol.pulsar import messages_pb2 as pb
from simulation.clients.batches import batch
from simulation.clients.connection import Disconnected
from simulation.clients.pulsar import ABANDONED, ABORTED, OPEN_SECONDS, Pipeline, run
from simulation.clients.pulsar_connection import Pushed
from simulation.clients.surroundings import Surroundings
from simulation.clients.transactional import Abort, Fenced, Producer, produce_request
from simulation.history import Outcome, Writing, value_of
from simulation.network import Network

UNKNOWN_TRANSACTION = -1
SILENT = 0.25
"""The share of transactions that Pulsar begins and Kafka's side writes nothing into."""
LATE = 0.3
"""The share of transactions that Kafka's side writes into after Pulsar's side has ended it."""
MAY_HAVE_ENDED = frozenset({ErrorCode.INVALID_TXN_STATE, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND})
"""The answers to who joins a Pulsar transaction that time, or a loss, has ended."""
KAFKA, PULSAR, BOTH, APART = "Kafka", "Pulsar", "both", "apart"


class _JointPipeline(Pipeline):
    """The pipeline of one instance; its producer begins again whenever it was fenced."""

    def __init__(self, here: Surroundings, network: Network) -> None:
        super().__init__(here, network)
        self._producer: Producer | None = None
        self._names: dict[int, str] = {}
        """The names of the writings by their attempts, as far as Pulsar's side has written all of its part."""

    async def _transform(self, taken: list[Pushed]) -> None:
        here, link = self._here, self._worker
        self.attempts += 1
        try:
            producer = self._producer or await self._new_producer()
            # Not before: another instance may write and be fenced by this one's producer meanwhile.
            writing = here.history.begin(f"{here.writer}.{self.attempts}", Outcome.NO_COMMIT)
            await self._transact(producer, taken, writing)
        except Abort:
            await self._abort()
        except Fenced:
            self._producer = None
        except Disconnected:  # of Pulsar's connection: nobody knows what is open
            self._producer = None
            raise
        is_committed = any(self.committed.get(int(each.value)) == self.attempts for each in taken)
        is_acknowledged = self.attempts in self._names
        if not is_committed and (self._is_in_order or not is_acknowledged):
            link.drop()  # everything comes again then, and not behind messages that are on their way

    async def _abort(self) -> None:
        """Abort by Kafka's side, as a client does that was told to. A producer that is fenced is given up."""
        producer, self._producer = self._producer, None
        if producer is not None:
            try:
                await producer.abort(bump=True)
                self._producer = producer
            except Fenced:
                pass

    async def _new_producer(self) -> Producer:
        producer = Producer(self._here)
        await producer.initialise()
        self._producer = producer
        return producer

    async def _transact(self, producer: Producer, taken: list[Pushed], writing: Writing) -> None:
        chance, attempt = self._here.chance, self.attempts
        is_silent = False
        if chance.random() < 0.5:
            await self._write(producer, writing)
            transaction = await self._join(producer, UNKNOWN_TRANSACTION)
        else:
            is_silent = chance.random() < SILENT
            begun = await self._worker.ask(self._worker.session.begin(self._here.timeout_ms))
            if begun.HasField("error"):
                if self._here.history.few_handles:
                    self._worker.drop()  # what was taken comes again
                else:
                    self.complain(f"no transaction begins: {begun.message}")
                return
            transaction = await self._join(producer, begun.txnid_least_bits)
        if transaction is None:
            return
        self._here.history.given_out("transaction", transaction)
        is_whole = await self._put_in(transaction, taken, attempt)
        if not is_silent:
            await self._write(producer, writing)
        if is_whole:
            self._names[attempt] = writing.name
        dice = chance.random()
        if dice < ABANDONED:
            self._worker.drop()
            self._producer = None
            return
        commit = is_whole and dice >= ABANDONED + ABORTED
        by = chance.choice([KAFKA, PULSAR, PULSAR, BOTH, APART if commit else KAFKA])
        end = _End(self, producer, writing, transaction, taken, is_silent=is_silent)
        await end.ask(by, commit=commit)

    async def _join(self, producer: Producer, named: int) -> int | None:
        """Return the transaction's id; None: the one that was named has ended."""
        request = JoinTransactionRequest(
            transactional_id=self._here.name,
            producer_id=producer.pair[0],
            producer_epoch=producer.pair[1],
            transaction_id=named,
        )
        answer = await self._here.connection.until_answered(request, 0)
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.NONE:
            transaction_id: int = answer.transaction_id
            return transaction_id
        if code in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_ID_MAPPING):
            raise Fenced
        if code is ErrorCode.CONCURRENT_TRANSACTIONS and self._here.version == 1:
            raise Abort  # a late request has begun one, and version 1 cannot tell
        is_one_too_many = code is ErrorCode.POLICY_VIOLATION and self._here.history.few_handles
        if not is_one_too_many and (named == UNKNOWN_TRANSACTION or code not in MAY_HAVE_ENDED):
            self.complain(f"joining {named} is refused: {code.name}")
        self._producer = None
        return None

    async def _write(self, producer: Producer, writing: Writing) -> None:
        chance, first = self._here.chance, len(writing.values)
        places = chance.sample(self._here.places, chance.randint(1, 2))
        values = [value_of(writing.name, first + number) for number in range(2 * len(places))]
        await producer.send(writing, [(place, values[2 * k : 2 * k + 2]) for k, place in enumerate(places)])

    async def judge(self) -> None:
        """See `Pipeline.judge`; tell the analysis what Pulsar's side has of each transaction."""
        if self.in_doubt:  # by then no open transaction holds back their results
            await asyncio.sleep(OPEN_SECONDS)
        await super().judge()
        self._here.history.joint.update({name: attempt in self.read for attempt, name in self._names.items()})


class _End:
    """The end of one joint transaction."""

    def __init__(
        self,
        pipeline: _JointPipeline,
        producer: Producer,
        writing: Writing,
        transaction: int,
        taken: list[Pushed],
        *,
        is_silent: bool,
    ) -> None:
        self._pipeline = pipeline
        self._here = pipeline._here
        self._producer = producer
        self._writing = writing
        self._transaction = transaction
        self._taken = taken
        self._attempt = pipeline.attempts
        self._is_silent = is_silent

    async def ask(self, by: str, *, commit: bool) -> None:
        """Let the transaction be ended by one side or both, and tell the pipeline if it is committed."""
        if commit:
            self._writing.outcome = Outcome.UNKNOWN
        if by == KAFKA:
            await self._by_kafka(commit=commit)
        elif by == PULSAR:
            if await self._by_pulsar(commit=commit) is None:
                self._pipeline._producer = None  # nobody knows how it ended
            else:
                await self._conclude(commit=self._writing.outcome is Outcome.COMMITTED)
        elif by == BOTH:
            await _both(self._by_kafka(commit=commit), self._by_pulsar(commit=commit))
        else:
            await self._apart()

    async def _by_kafka(self, *, commit: bool) -> None:
        try:
            await self._producer.end(commit=commit)
        except Abort:
            self._settle(committed=False)
            raise
        except Fenced:  # an earlier try may have done it: the other side can tell
            self._pipeline._producer = None
            if commit:
                await self._by_pulsar(commit=True, tries=1)
            return
        self._settle(committed=commit)
        if self._here.chance.random() < 0.5:
            await self._compare(commit=commit)

    async def _compare(self, *, commit: bool) -> None:
        """Complain where Pulsar's side is told another outcome than Kafka's."""
        for again, expected in ((commit, None), (not commit, pb.ServerError.InvalidTxnStatus)):
            answer, _ = await self._pipeline._end(self._transaction, commit=again)
            found = answer.error if answer.HasField("error") else None
            if found not in (expected, pb.ServerError.TransactionNotFound):
                self._pipeline.complain(f"{self._transaction} has ended, commit: {commit}; {again} is told {found}")

    async def _by_pulsar(self, *, commit: bool, tries: int = 0) -> bool | None:
        """Return whether it is committed; None: nobody can tell. It was asked for `tries` times before."""
        answer, more = await self._pipeline._end(self._transaction, commit=commit)
        if not answer.HasField("error"):
            return self._settle(committed=commit)
        if answer.error == pb.ServerError.InvalidTxnStatus:
            return self._settle(committed=not commit)
        if answer.error != pb.ServerError.TransactionNotFound:
            self._pipeline.complain(f"the end of {self._transaction} is refused: {answer.message}")
        if tries + more == 1:  # a loss has forgotten it
            return self._settle(committed=False)
        if commit:
            self._pipeline.in_doubt |= {(int(each.value), self._attempt) for each in self._taken}
        return None

    def _settle(self, *, committed: bool) -> bool:
        """Note how it has ended, once."""
        pipeline, before = self._pipeline, self._writing.outcome
        outcome = Outcome.COMMITTED if committed else Outcome.NO_COMMIT
        if committed and before is Outcome.NO_COMMIT:
            pipeline.complain(f"{self._writing.name} is committed, and nobody has asked for that")
        if committed and before is Outcome.UNKNOWN:
            pipeline._note_commit(self._taken, self._attempt)
        if not committed and before is Outcome.COMMITTED:
            pipeline.complain(f"{self._writing.name} is committed and aborted")
            return False
        self._writing.outcome = outcome
        return committed

    async def _apart(self) -> None:
        """Let the sides be of two minds: one of them wins, and the other one is told so."""
        self._writing.outcome = Outcome.UNKNOWN
        aborted, done = await _both(self._pipeline._end(self._transaction, commit=False), self._asked_to_commit())
        is_aborted = not aborted[0].HasField("error")
        if is_aborted and done is True:
            self._pipeline.complain(f"{self._transaction} is aborted by Pulsar's side and committed by Kafka's")
        if done is None:
            self._pipeline._producer = None
            await self._by_pulsar(commit=True, tries=1)
        else:
            self._settle(committed=done)

    async def _asked_to_commit(self) -> bool | None:
        try:
            await self._producer.end(commit=True)
        except Abort:
            await self._pipeline._abort()
            return False
        except Fenced:
            return None
        return True

    async def _conclude(self, *, commit: bool) -> None:
        """Go on by Kafka's side after Pulsar's side has ended it."""
        if self._here.chance.random() < LATE:
            await self._write_late()
        if self._is_silent and self._here.chance.random() < 0.7:
            return  # clients send no end then, and the next transaction is joined
        if not commit and self._here.chance.random() < 0.3:
            try:
                await self._producer.end(commit=True)
                self._pipeline.complain(f"{self._transaction} is aborted, and its commit is answered with success")
            except Abort:
                pass
        await self._producer.end(commit=commit)

    async def _write_late(self) -> None:
        """Write after the end, and register before that in version 1; all of it must be refused."""
        here, producer = self._here, self._producer
        late = here.history.begin(f"{self._writing.name}l", Outcome.NO_COMMIT)
        place = here.chance.choice(here.places)
        if here.version == 1:
            topics = [AddPartitionsToTxnTopic(name=place[0], partitions=[place[1]])]
            add = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=here.name,
                v3_and_below_producer_id=producer.pair[0],
                v3_and_below_producer_epoch=producer.pair[1],
                v3_and_below_topics=topics,
            )
            await self._refused(add, 3, lambda answer: answer.results_by_topic_v3_and_below[0].results_by_partition[0])
        value = value_of(late.name, 0)
        late.values[value] = place
        data = batch([value], producer.pair, 0, transactional=True, now_ms=here.now_ms())
        request = produce_request(place, data, here.name)
        await self._refused(
            request, 11 + (here.version == 2), lambda answer: answer.responses[0].partition_responses[0]
        )

    async def _refused(self, request: Any, version: int, result: Any) -> None:
        told = result(await self._here.connection.until_answered(request, version))
        code = getattr(told, "partition_error_code", None)
        code = told.error_code if code is None else code
        if code == ErrorCode.NONE:
            self._pipeline.complain(f"{self._transaction} has ended, and a late write by Kafka's side is taken")


async def _both(*asked: Coroutine[Any, Any, Any]) -> list[Any]:
    """Wait for both, whatever the other one raises."""
    answers = await asyncio.gather(*asked, return_exceptions=True)
    for each in answers:
        if isinstance(each, BaseException):
            raise each
    return answers


async def joint_pipeline(here: Surroundings, network: Network) -> bool:
    """Transform numbers in transactions over both protocols."""
    await run(here, _JointPipeline(here, network))
    return False
