"""A program of transactions without a transactional id: several write into one, and somebody else ends it, or nobody.

A write has no sequence, so that it is never sent again: whether one that nobody answered is there, nobody knows.
"""

import asyncio

from exacta.core.commands import (
    AppendBatch,
    BeginTransaction,
    CommitTransactionalOffsets,
    EndHandle,
    OffsetToCommit,
)
from exacta.core.ids import TransactionId
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, Appended, TransactionBegunReply
from simulation.clients.batches import batch
from simulation.clients.connection import Disconnected
from simulation.clients.plain_calls import PlainCalls
from simulation.clients.surroundings import Surroundings
from simulation.history import Outcome, Place, Writing, value_of

GROUP = "handles"
NO_SEQUENCE = -1
ABANDONED, ABORTED = 0.15, 0.15
"""The shares of handles that nobody ends, and that somebody aborts."""
EARLY = 0.1
"""The share of handles that are ended while their writers still write."""
REFUSED = (
    Rejection.INVALID_TRANSACTION_STATE,
    Rejection.TRANSACTION_ENDED,
    Rejection.TRANSACTION_NOT_FOUND,
)


class _Handle:
    """One handle, as those see it who share it."""

    def __init__(self, here: Surroundings, begun: TransactionBegunReply, writing: Writing) -> None:
        self.transaction_id = begun.transaction_id
        self._here = here
        self._pair = (begun.producer_id, 0)
        self._writing = writing

    async def write(self, calls: PlainCalls, places: list[Place]) -> None:
        """Write batches to places that no other writer of this handle writes to."""
        here, writing = self._here, self._writing
        for _ in range(here.chance.choice([1, 1, 2, 4])):
            place = here.chance.choice(places)
            first = len(writing.values)
            values = [value_of(writing.name, first + k) for k in range(here.chance.randint(1, 3))]
            writing.values.update(dict.fromkeys(values, place))
            data = batch(values, self._pair, NO_SEQUENCE, transactional=True, now_ms=here.now_ms())
            command = AppendBatch(
                topic=place[0],
                partition=place[1],
                record_count=len(values),
                size=len(data),
                max_timestamp_ms=here.now_ms(),
                transaction=self.transaction_id,
                handle_producer_id=self._pair[0],
            )
            answer = await _asked(calls, command, data)
            if answer in REFUSED:
                return
            if answer is Rejection.LIMIT_REACHED:
                continue  # too much takes part; the handle is open, and what takes part may be written to
            if answer is Rejection.TOO_MUCH_STAGED and here.history.may_be_full and here.history.stages(place[0]):
                continue  # the end of any transaction that has staged something makes room
            if isinstance(answer, Appended):
                writing.acknowledged.update({value: answer.base_offset + k for k, value in enumerate(values)})
            elif answer is not None:
                here.history.refusals.append(f"refused: {writing.name} to {place}: {answer}")

    async def commit_offsets(self, calls: PlainCalls, place: Place) -> None:
        """Let a group's offset take part."""
        offset = OffsetToCommit(topic=place[0], partition=place[1], offset=self.transaction_id)
        command = CommitTransactionalOffsets(transaction=self.transaction_id, group_id=GROUP, offsets=(offset,))
        await _asked(calls, command)


async def _asked(
    calls: PlainCalls, command: AppendBatch | CommitTransactionalOffsets, data: bytes | None = None
) -> object:
    """Return the answer; None: nobody heard one."""
    try:
        answer: object = await calls.ask(command, data)
    except Disconnected:
        return None
    return answer


async def handles(here: Surroundings) -> bool:
    """Begin handles and write into them until the world is over."""
    number = 0
    while not here.is_over():
        await here.think(1.0)
        number += 1
        try:
            begun = await here.calls.ask(BeginTransaction(timeout_ms=here.timeout_ms, client_id=here.name))
        except Disconnected:
            continue  # maybe there is one now that nobody knows of
        if begun is Rejection.LIMIT_REACHED and here.history.few_handles:
            continue  # all that are open are in use
        if not isinstance(begun, TransactionBegunReply):
            here.history.refusals.append(f"refused: {here.writer} begins a handle: {begun}")
            continue
        here.history.given_out("transaction", begun.transaction_id)
        here.history.given_out("producer", begun.producer_id)
        writing = here.history.begin(f"{here.writer}.{number}", Outcome.NO_COMMIT)
        await _share(here, _Handle(here, begun, writing), writing)
    return False


async def _share(here: Surroundings, handle: _Handle, writing: Writing) -> None:
    chance = here.chance
    places = chance.sample(here.places, len(here.places))
    count = chance.randint(1, min(3, len(places)))
    writers = [here.loop.create_task(handle.write(here.calls, places[k::count])) for k in range(count)]
    try:
        if chance.random() < 0.3:
            await handle.commit_offsets(here.calls, chance.choice(here.places))
        if chance.random() >= EARLY:
            await asyncio.gather(*writers)
            if chance.random() < 0.3:
                await here.think(0.3)
        await _end(here, handle.transaction_id, writing)
        await asyncio.gather(*writers)
    finally:
        for writer in writers:
            writer.cancel()


async def _end(here: Surroundings, transaction_id: TransactionId, writing: Writing) -> None:
    """Let somebody end the handle who has only been told its id."""
    dice = here.chance.random()
    if dice < ABANDONED:
        return
    commit = dice >= ABANDONED + ABORTED
    if commit:
        writing.outcome = Outcome.UNKNOWN
    answer, tries = await here.calls.answer_and_tries(EndHandle(transaction_id=transaction_id, commit=commit))
    if answer == DONE and commit:
        writing.outcome = Outcome.COMMITTED
    elif commit and (tries == 1 or answer != Rejection.TRANSACTION_NOT_FOUND):
        writing.outcome = Outcome.NO_COMMIT  # it timed out, or a loss has ended or forgotten it
    # An earlier try may have committed it so long ago, by a clock that jumps, that its outcome is forgotten.
    if answer != DONE and answer not in REFUSED:
        here.history.refusals.append(f"refused: the end of {writing.name}: {answer}")
