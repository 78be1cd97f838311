"""Understand where reading begins and ends in a partition, in kcat's words; find these offsets on a cluster."""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from exacta.cli.times import time_ms

if TYPE_CHECKING:
    from exacta.client.routing import Client
    from exacta.client.transactions import TopicPartition

_MOST_DIGITS = 18


class PositionKind(Enum):
    """The ways to say where."""

    BEGINNING = "the first offset that there is"
    END = "the end, of what the reader may see"
    OFFSET = "an offset; negative: this many before the end"
    TIME = "the first record that is not older"


class Place(NamedTuple):
    """A place in a partition. `number` is the offset, or the time in ms."""

    kind: PositionKind
    number: int = 0


BEGINNING = Place(PositionKind.BEGINNING)
END = Place(PositionKind.END)
_WORDS = {"beginning": BEGINNING, "earliest": BEGINNING, "end": END, "latest": END}


class NoPlace(ValueError):
    """A text does not name a place. The message is one sentence."""


class Range(NamedTuple):
    """The part of each partition that is read; without `end` reading goes on for ever."""

    start: Place
    end: Place | None


def range_of(texts: Sequence[str]) -> Range:
    """Return what `-o` says, given once for the start and once, by `e@…`, for the end; raises `NoPlace`."""
    start = end = None
    for text in texts:
        if text.startswith("e@"):
            if end is not None:
                raise NoPlace(f"'{text}' is a second end")
            end = _time(text)
            continue
        if start is not None:
            raise NoPlace(f"'{text}' is a second start")
        start = place_of(text)
    return Range(start or BEGINNING, end)


def place_of(text: str) -> Place:
    """Return the place that a text names; raises `NoPlace`."""
    if text in _WORDS:
        return _WORDS[text]
    if text.startswith("s@"):
        return _time(text)
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS:
        if text.startswith("-") and int(digits) == 0:
            return END
        return Place(PositionKind.OFFSET, int(text))
    raise NoPlace(
        f"'{text}' is none of beginning, end, an offset, -N for the last N, s@TIME or e@TIME "
        "(ms since 1970, or 2026-01-31T12:00:00Z)"
    )


def destination_of(text: str) -> Place:
    """Return the place that a group is to be moved to, for which a time may also be given alone; raises `NoPlace`."""
    try:
        return place_of(text)
    except NoPlace:
        at_ms = time_ms(text)
        if at_ms is None:
            raise
        return Place(PositionKind.TIME, at_ms)


def _time(text: str) -> Place:
    at_ms = time_ms(text[2:])
    if at_ms is None:
        raise NoPlace(f"'{text[2:]}' is no time: give ms since 1970, or 2026-01-31T12:00:00Z")
    return Place(PositionKind.TIME, at_ms)


def offsets_at(
    client: "Client", partitions: "Iterable[TopicPartition]", place: Place, isolation_level: int
) -> "Mapping[TopicPartition, int]":
    """Return the offset of a place in each partition, which lies between its first offset and its end.

    An offset that is given lies where it is given: a reader there is told if there is nothing.
    """
    from exacta.client.topics import EARLIEST, LATEST, list_offsets

    wanted = list(partitions)
    if place.kind is PositionKind.OFFSET and place.number >= 0:
        return dict.fromkeys(wanted, place.number)
    if place.kind is PositionKind.BEGINNING:
        return list_offsets(client, wanted, EARLIEST, isolation_level=isolation_level)
    ends = list_offsets(client, wanted, LATEST, isolation_level=isolation_level)
    if place.kind is PositionKind.END:
        return ends
    if place.kind is PositionKind.TIME:
        found = list_offsets(client, wanted, place.number, isolation_level=isolation_level)
        return {each: ends[each] if found[each] < 0 else found[each] for each in wanted}
    first = list_offsets(client, wanted, EARLIEST, isolation_level=isolation_level)
    return {each: max(first[each], ends[each] + place.number) for each in wanted}


def destinations(
    client: "Client",
    partitions: "Sequence[TopicPartition]",
    to: Place | int,
    committed: "Mapping[TopicPartition, int]",
) -> "dict[TopicPartition, int]":
    """Return where a group is moved to: a place, or this many offsets from where it stands, as far as there is a log.

    The end is the last stable offset, so that no record of a transaction that is open now is skipped.
    """
    from exacta.client.topics import READ_COMMITTED

    first = offsets_at(client, partitions, BEGINNING, READ_COMMITTED)
    ends = offsets_at(client, partitions, END, READ_COMMITTED)
    if isinstance(to, int):
        wanted: Mapping[TopicPartition, int] = {each: committed[each] + to for each in partitions}
    else:
        wanted = offsets_at(client, partitions, to, READ_COMMITTED)
    return {each: max(first[each], min(ends[each], wanted[each])) for each in partitions}
