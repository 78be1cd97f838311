"""The decision record: which transactions make up a batch.

The module is pure. It owns the form of a record as text. A record is written as the metadata of committed offsets,
which Apache Kafka limits to 4,096 bytes (`offset.metadata.max.bytes`), so a long record is cut into pieces, each in a
group of its own.

Form: JSON; the first piece holds the counts, where the query lives and what the batch reads; each piece holds a run of
entries in base 85 (whose alphabet JSON need not escape), 16 bytes each: task, attempt, producer id, producer epoch.
"""

import base64
import json
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

MOST_BYTES = 4096

_ENTRY = struct.Struct(">IHqh")
_ENTRY_CHARACTERS = 20  # 16 bytes in base 85
_FORM = 1
_FORM_NONE_YET = 2
"""The form of a record that decides nothing. Versions that know only the first form must not take it for batch 0's."""
_NONE_DECIDED = -1
# Locations are compared whole and shown to people; one longer than this is cut, at its more telling end.
_MOST_LOCATION_CHARACTERS = 700
_MOST_NAME_CHARACTERS = 64


class UnreadableDecision(ValueError):
    """A decision record that this version cannot read: it must not be guessed about."""


class DecisionEntry(NamedTuple):
    """One task's transaction."""

    task: int
    attempt: int
    producer_id: int
    producer_epoch: int


class Decision(NamedTuple):
    """The transactions of a decided batch, and whose batch it is."""

    batch_id: int
    tasks: int  # of the batch, those without rows included
    query_id: str
    location: str  # of the checkpoint
    reads: str  # digest of the offsets that the batch covers: the same id alone does not make it the same batch
    entries: tuple[DecisionEntry, ...]
    rows: int = -1  # of the batch; -1: not told
    query_name: str = ""  # for operators, like the next one; empty: not known
    application: str = ""

    @classmethod
    def none_yet(cls, query_id: str, location: str, query_name: str = "", application: str = "") -> Self:
        """Return the record of a sink that has begun and decided nothing."""
        return cls(_NONE_DECIDED, 0, query_id, location, "", (), query_name=query_name, application=application)

    @property
    def is_one(self) -> bool:
        """Return whether a batch was decided."""
        return self.batch_id != _NONE_DECIDED

    @property
    def offset(self) -> int:
        """Return the offset that the record is committed as: the batch, or 0, for an offset is not negative."""
        return max(self.batch_id, 0)


class Origin(NamedTuple):
    """The owner of a record, and whether the record decides a batch."""

    query_id: str
    location: str
    decides: bool
    query_name: str
    application: str


def shown_location(location: str) -> str:
    """Return a checkpoint location as a record holds it."""
    return location[-_MOST_LOCATION_CHARACTERS:]


def pack(decision: Decision) -> list[str]:
    """Return the pieces of a record, each at most `MOST_BYTES` long in UTF-8."""
    head: dict[str, object] = {
        "form": _FORM if decision.is_one else _FORM_NONE_YET,
        "tasks": decision.tasks,
        "pieces": 9999,  # as wide as it may become
        "query": decision.query_id,
        "location": shown_location(decision.location),
        "reads": decision.reads,
        "rows": decision.rows,
        "name": decision.query_name[:_MOST_NAME_CHARACTERS],
        "app": decision.application[:_MOST_NAME_CHARACTERS],
        "entries": "",
    }
    room = (MOST_BYTES - len(_json(head).encode())) // _ENTRY_CHARACTERS
    entries = list(decision.entries)
    runs = [entries[:room]]
    further = (MOST_BYTES - 64) // _ENTRY_CHARACTERS
    runs += [entries[at : at + further] for at in range(room, len(entries), further)]
    head["pieces"] = len(runs)
    head["entries"] = _encode(runs[0])
    return [_json(head), *(_json({"form": _FORM, "entries": _encode(run)}) for run in runs[1:])]


def pieces_of(first_piece: str) -> int:
    """Return how many pieces the record has whose first piece this is; raises `UnreadableDecision`."""
    return int(_read(first_piece).get("pieces", 0))


def origin_of(first_piece: str) -> Origin:
    """Return what a record says of itself; raises `UnreadableDecision`."""
    head = _read(first_piece)
    query_id, location, query_name, application = (
        str(head.get(each, "")) for each in ("query", "location", "name", "app")
    )
    return Origin(query_id, location, head["form"] == _FORM, query_name, application)


def unpack(offset: int, pieces: Sequence[str]) -> Decision:
    """Return the record that `pack` made pieces of; raises `UnreadableDecision`."""
    head = _read(pieces[0])
    batch_id = offset if head["form"] == _FORM else _NONE_DECIDED
    entries: list[DecisionEntry] = []
    try:
        for piece in pieces:
            packed = base64.b85decode(_read(piece)["entries"])
            entries += [DecisionEntry(*fields) for fields in _ENTRY.iter_unpack(packed)]
        return Decision(
            batch_id,
            int(head["tasks"]),
            str(head["query"]),
            str(head["location"]),
            str(head["reads"]),
            tuple(entries),
            int(head.get("rows", -1)),
            str(head.get("name", "")),
            str(head.get("app", "")),
        )
    except (KeyError, TypeError, ValueError, struct.error) as error:
        raise UnreadableDecision(f"the decision record of batch {batch_id} is damaged: {error!r}") from error


def _encode(entries: Sequence[DecisionEntry]) -> str:
    return base64.b85encode(b"".join(_ENTRY.pack(*entry) for entry in entries)).decode()


def _json(content: dict[str, object]) -> str:
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False)


def _read(piece: str) -> dict[str, Any]:
    try:
        found = json.loads(piece)
    except ValueError as error:
        raise UnreadableDecision(f"a decision record is not JSON: {error}") from error
    if not isinstance(found, dict) or found.get("form") not in (_FORM, _FORM_NONE_YET):
        raise UnreadableDecision("a decision record was written by another version of exacta; use that one to go on")
    return found
