"""The judge holds what a reader saw against what it should have seen.

This module owns the counting of losses, repetitions, strangers, disorder and aborted rows. The module is pure: rows
come from `topics`, the truth from `expectation` and, about transactions, from `raw_log`.

Theory of operation. Every row has an identity in its contents (the flight; the airport and hour), so each can be
asked after by name:

- *lost*: identities expected of which no correct row was seen;
- *twice*: further correct rows of an identity that was already seen;
- *wrong*: rows that nobody expects: of an unknown identity, or with another key or other contents than computed;
- *disordered*: rows that come, in their partition, after one of the same key that followed them in the input, and
  rows in another partition than the key's first one; repetitions are counted as such and not here. Only for an output
  whose order is promised;
- *aborted*: rows seen at an offset that belongs to a transaction which was not committed, according to the
  markers in the log itself (see `raw_log`), whatever the row's contents are.

An aborted row that is shown is usually a repetition too, and then counts as both.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

import msgspec
from msgspec import Struct

from exacta.demo.raw_log import TransactionsOfTopic


class SeenRow(Struct, frozen=True):
    """Hold one record as the independent reader received it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None


class OutputVerdict(Struct, frozen=True, kw_only=True):
    """Hold what was counted for one output; `disordered` is None where no order is promised."""

    name: str
    expected: int
    seen: int
    lost: int
    twice: int
    wrong: int
    aborted_seen: int
    disordered: int | None
    aborted_in_log: int
    undecided_in_log: int
    examples: tuple[str, ...] = ()

    @property
    def exactly_once(self) -> bool:
        """Say whether every expected row was seen once, in order where promised, and nothing else."""
        faults = self.lost + self.twice + self.wrong + self.aborted_seen + (self.disordered or 0)
        return faults == 0 and self.seen == self.expected


class Output(Struct, frozen=True, kw_only=True):
    """Describe one output: how its rows are read, told apart, and in which order they must come.

    `expected`: identity -> (message key, contents). `position` gives a row's place in the input, or is None where the
    output promises no order.
    """

    name: str
    row_type: type
    identity: Callable[[Any], Any]
    expected: Mapping[Any, tuple[bytes, Any]]
    position: Callable[[Any], int] | None = None


_MAX_EXAMPLES = 5


def judge(output: Output, rows: Iterable[SeenRow], transactions: TransactionsOfTopic) -> OutputVerdict:
    """Compare the rows, which must come in offset order within each partition, with what the output should hold."""
    decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(output.row_type)
    found: set[Any] = set()
    seen = twice = wrong = aborted_seen = disordered = 0
    last_of_key: dict[bytes | None, tuple[int, int]] = {}
    examples: list[str] = []

    def note(what: str, row: SeenRow) -> None:
        if len(examples) < _MAX_EXAMPLES:
            examples.append(f"{what}: partition {row.partition} offset {row.offset} key {row.key!r}")

    for row in rows:
        seen += 1
        if not transactions.is_committed(row.partition, row.offset):
            aborted_seen += 1
            note("aborted", row)
        try:
            contents = decoder.decode(row.value or b"")
        except msgspec.DecodeError:
            wrong += 1
            note("unreadable", row)
            continue
        identity = output.identity(contents)
        if output.expected.get(identity) != (row.key, contents):
            wrong += 1
            note("wrong", row)
            continue
        if identity in found:
            twice += 1
            note("twice", row)
            continue
        found.add(identity)
        if output.position is None:
            continue
        position = output.position(contents)
        partition, latest = last_of_key.setdefault(row.key, (row.partition, position))
        if row.partition != partition or position < latest:
            disordered += 1
            note("disordered", row)
        else:
            last_of_key[row.key] = (partition, position)

    lost = (identity for identity in output.expected if identity not in found)
    examples += (f"lost: {identity}" for identity in islice(lost, _MAX_EXAMPLES - len(examples)))
    return OutputVerdict(
        name=output.name,
        expected=len(output.expected),
        seen=seen,
        lost=len(output.expected) - len(found),
        twice=twice,
        wrong=wrong,
        aborted_seen=aborted_seen,
        disordered=None if output.position is None else disordered,
        aborted_in_log=transactions.aborted_records,
        undecided_in_log=transactions.undecided_records,
        examples=tuple(examples),
    )
