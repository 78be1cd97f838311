"""A fetch: what a reader asks for, and what it is answered."""

from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple

from msgspec import Struct, field

from exacta.core.ids import Body
from exacta.core.rejections import Rejection
from exacta.core.state.partition import AbortedTransaction
from exacta.ports.log.visible import Visible
from exacta.ports.record_format import Buffer


class FetchPartition(Struct, gc=False):
    """The offset from which one partition is read, and how much of it.

    The answer holds at most `max_bytes` of it, but at least one batch if it would be empty otherwise. `topic_id` is
    empty where the reader goes by the name. Otherwise a topic that was created again under the name is not read, not
    even by a fetch that was waiting meanwhile (KIP-516).
    """

    topic: str
    partition: int
    fetch_offset: int
    max_bytes: int
    topic_id: bytes = b""


ALL_BODIES = frozenset(Body)

Admitted = Callable[[int], None]
"""Is called with the most bytes that may be read now. One batch may always be read."""


class Share(NamedTuple):
    """The records of one partition that are to be converted; `room` is the space for them in the answer, in bytes."""

    batches: list[Buffer]
    offset_count: int
    room: int


Convert = Callable[[list[Share], Callable[[], bool], Callable[[list[list[Buffer]]], None]], None]
"""Calls back, now or later, with the batches of each share as the front's clients read them; none where there was no
room left. It need not call back once the function beside the shares says that nobody wants them any more."""


def _at_once(size: int, admitted: Admitted) -> None:
    admitted(size)


def _all_at_once(steps: Generator[None, Any, None]) -> None:
    deque(steps, maxlen=0)


class FetchRequest(Struct):
    """A request that is answered when `min_bytes` are there or `max_wait_ms` are over.

    The answer holds at most `max_bytes` in all, given to the partitions in their order (KIP-74). `admit` is asked, with
    the number of bytes that were found, before they are read into memory. It calls back now, or later, or never.
    """

    partitions: list[FetchPartition]
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    read_committed: bool
    bodies: frozenset[Body] = ALL_BODIES
    """The encodings that the reader understands."""
    convert: Convert | None = None
    """Converts the batches of a partition that has batches of other encodings. None: such a partition is refused."""
    admit: Callable[[int, Admitted], None] = _at_once
    key: int = 0
    """The fetcher's number of a request that waits; negative: nobody wants the answer any more."""
    in_steps: Callable[[Generator[None, Any, None]], None] = _all_at_once
    """Takes the steps of a long fetch, each when there is time for it."""


class FetchResult(Struct, gc=False):
    """One partition's share of an answer. `records` are whole batches, one after another.

    With OFFSET_OUT_OF_RANGE, `visible` tells which end of the log the offset is beyond. A follower may not have come to
    an offset behind the high watermark yet, so that it is none to be refused for good.
    """

    visible: Visible | None = None
    rejection: Rejection | None = None
    records: list[Buffer] = field(default_factory=list)
    aborted: Sequence[AbortedTransaction] = ()
    room: int = 0
    """The room for records that are to be converted; 0: they are answered as they lie in the log."""
    offset_count: int = 0
    """The number of offsets that are to be converted."""
