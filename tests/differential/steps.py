"""What a sequence is made of: requests of two transactional clients, valid ones and others, by what they refer to.

A step names nothing that only one broker knows. `age` says whose pair (producer id and epoch) a request carries: 0 is
the one that the client was given last, 1 the one before it, -1 one that nobody was given yet (the last one's next
epoch; which epochs lie between two that were given is each broker's own affair). `transactions.py` makes frames.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from tests.differential import machine

CLIENTS = ("a", "b")
PARTITIONS = (0, 1)
GROUPS = ("g", "h")
MEMBERS = ("m", "n", "o")


@dataclass(frozen=True, kw_only=True, repr=False)
class Step(machine.Step):
    """One request."""

    client: str
    version: int
    age: int = 0


@dataclass(frozen=True, kw_only=True, repr=False)
class Init(Step):
    """InitProducerId; `presents` the pair (KIP-360) or takes the id over."""

    presents: bool = False


@dataclass(frozen=True, kw_only=True, repr=False)
class AddPartitions(Step):
    """AddPartitionsToTxn."""

    partitions: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class AddGroup(Step):
    """AddOffsetsToTxn."""

    group: str


@dataclass(frozen=True, kw_only=True, repr=False)
class Produce(Step):
    """Produce of one batch; `skip` is added to the sequence that comes next, `repeat` sends the last batch again."""

    partition: int
    count: int
    skip: int = 0
    repeat: bool = False
    transactional: bool = True


@dataclass(frozen=True, kw_only=True, repr=False)
class CommitOffsets(Step):
    """TxnOffsetCommit; a `stale` one names a member that the group does not have (KIP-447)."""

    group: str
    offset: int
    stale: bool = False


@dataclass(frozen=True, kw_only=True, repr=False)
class End(Step):
    """EndTxn."""

    commit: bool


@dataclass(frozen=True, kw_only=True, repr=False)
class PlainOffsets(Step):
    """OffsetCommit outside any transaction."""

    group: str
    offset: int


@dataclass(frozen=True, kw_only=True, repr=False)
class ReadOffsets(Step):
    """OffsetFetch, of stable offsets only or not."""

    group: str
    stable: bool


@dataclass(frozen=True, kw_only=True, repr=False)
class ReadEnd(Step):
    """ListOffsets of the end, as a reader of either isolation sees it."""

    partition: int
    committed: bool


_client = st.sampled_from(CLIENTS)
_partition = st.sampled_from(PARTITIONS)
_group = st.sampled_from(GROUPS)
# Mostly what a client would send; now and then what a zombie or a broken one would.
ages = st.sampled_from([0] * 16 + [1, 1, 2, -1])
_whose = {"client": _client, "age": ages}
_count = st.integers(1, 3)

_steps = [
    st.builds(Init, client=_client, version=st.integers(0, 5)),
    st.builds(Init, **_whose, version=st.integers(3, 5), presents=st.just(True)),
    st.builds(
        AddPartitions,
        **_whose,
        version=st.integers(0, 3),
        partitions=st.lists(_partition, min_size=1, max_size=2, unique=True).map(tuple),
    ),
    st.builds(AddGroup, **_whose, version=st.integers(0, 4), group=_group),
    st.builds(Produce, **_whose, version=st.integers(3, 12), partition=_partition, count=_count),
    st.builds(Produce, **_whose, version=st.just(12), partition=_partition, count=_count),
    st.builds(
        Produce,
        **_whose,
        version=st.integers(3, 12),
        partition=_partition,
        count=_count,
        skip=st.sampled_from([0, 1, 2, -1]),
        repeat=st.booleans(),
        transactional=st.sampled_from([True, True, True, False]),
    ),
    st.builds(
        CommitOffsets,
        **_whose,
        version=st.integers(0, 5),
        group=_group,
        offset=st.integers(0, 9),
        stale=st.sampled_from([False, False, False, True]),
    ),
    st.builds(End, **_whose, version=st.integers(0, 5), commit=st.booleans()),
    st.builds(End, **_whose, version=st.just(5), commit=st.booleans()),
    st.builds(PlainOffsets, client=_client, version=st.integers(2, 6), group=_group, offset=st.integers(10, 19)),
    st.builds(ReadOffsets, client=_client, version=st.just(7), group=_group, stable=st.booleans()),
    st.builds(ReadEnd, client=_client, version=st.just(6), partition=_partition, committed=st.booleans()),
]

usual = st.one_of(_steps)
"""What transactional clients do."""

sequences = st.lists(usual, min_size=1, max_size=25)
"""A sequence; every client has taken its id over before the first step."""
