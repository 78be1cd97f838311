"""Anomalies to plant into a clean history, and the ways to plant them."""

from collections.abc import Callable, Iterator
from itertools import pairwise

import msgspec

from exacta.verify.analysis.ledger import Fate, Ledger, Place, Record, Transaction, fold
from exacta.verify.history import Begin, End, GroupOffsets, Init, Isolation, Op, Outcome, Poll, ReadTo, Watermarks

Plant = Callable[[list[Op]], list[Op]]
LATE_US = 10**9


class CannotPlant(Exception):
    """This history has no place for it."""


def first(found: Iterator):
    for each in found:
        return each
    raise CannotPlant


def place_of(record: Record) -> Place:
    """Return where a record was sent."""
    assert record.place is not None
    return record.place


def delivered_at(record: Record) -> int:
    """Return where a record was said to lie."""
    assert record.delivered is not None
    return record.delivered


def transactions(history: list[Op], fate: Fate, topic: str = "append") -> Iterator[tuple[Transaction, list[Record]]]:
    """Yield the transactions of a fate that write to a topic, with their records."""
    ledger = fold(history)
    for transaction in ledger.transactions.values():
        records = [ledger.records[number] for number in transaction.records]
        if transaction.fate is fate and records and place_of(records[0])[0] == topic:
            yield transaction, records


def shown(history: list[Op], isolation: Isolation, *, final: bool = True) -> dict[str, tuple[Place, int]]:
    """Return where a value is shown."""
    return {
        value: ((op.topic, op.partition), offset)
        for op in history
        if isinstance(op, Poll) and op.isolation is isolation and op.final is final
        for offset, value in op.records
    }


def edit(history: list[Op], kind: type, change: Callable[..., dict]) -> list[Op]:
    """Replace fields of all operations of a kind."""
    return [msgspec.structs.replace(op, **change(op)) if isinstance(op, kind) else op for op in history]


def without(history: list[Op], values: set[str], when: Callable[[Poll], bool] = lambda poll: True) -> list[Op]:
    """Let polls not show values."""
    return edit(
        history, Poll, lambda op: {"records": [each for each in op.records if each[1] not in values or not when(op)]}
    )


def with_record(history: list[Op], record: tuple[int, str], place: Place, when: Callable[[Poll], bool]) -> list[Op]:
    """Let one reader get one more record, in its place."""
    polls = {
        number: op
        for number, op in enumerate(history)
        if isinstance(op, Poll) and (op.topic, op.partition) == place and op.session and when(op)
    }
    if not polls:
        raise CannotPlant
    into = next((number for number, op in polls.items() if op.records[-1][0] >= record[0]), max(polls))
    changed = list(history)
    poll = polls[into]
    changed[into] = msgspec.structs.replace(poll, records=sorted([*poll.records, record]))
    return changed


def end_of(history: list[Op], place: Place) -> int:
    return max(
        op.next_offset for op in history if isinstance(op, ReadTo) and op.whole and (op.topic, op.partition) == place
    )


def is_live(isolation: Isolation) -> Callable[[Poll], bool]:
    return lambda op: op.isolation is isolation and not op.final


def is_final(isolation: Isolation) -> Callable[[Poll], bool]:
    return lambda op: op.isolation is isolation and op.final


def lost(history: list[Op]) -> list[Op]:
    _, records = first(transactions(history, Fate.COMMITTED))
    return without(history, {records[0].value})


def lost_at_the_end(history: list[Op]) -> list[Op]:
    committed = {record.value for _, records in transactions(history, Fate.COMMITTED) for record in records}
    at = shown(history, Isolation.UNCOMMITTED)
    last = {place: value for value, (place, _) in at.items()}
    return without(history, {first(value for value in last.values() if value in committed)})


def lost_for(isolation: Isolation) -> Plant:
    def plant(history: list[Op]) -> list[Op]:
        _, records = first(transactions(history, Fate.COMMITTED))
        return without(history, {records[0].value}, lambda poll: poll.isolation is isolation)

    return plant


def apart(history: list[Op]) -> list[Op]:
    """Let Pulsar's readers get nothing of a transaction whose outcome nobody knows, and which Kafka's readers get."""
    at = shown(history, Isolation.COMMITTED)
    _, records = first(each for each in transactions(history, Fate.UNKNOWN) if each[1][0].value in at)
    return without(history, {record.value for record in records}, lambda poll: poll.isolation is Isolation.PULSAR)


def seen_and_gone(history: list[Op]) -> list[Op]:
    live = shown(history, Isolation.COMMITTED, final=False)
    _, records = first(each for each in transactions(history, Fate.UNKNOWN) if each[1][0].value in live)
    return without(history, {record.value for record in records}, lambda poll: poll.final)


def aborted(isolation_and_when: Callable[[Poll], bool]) -> Plant:
    def plant(history: list[Op]) -> list[Op]:
        at = shown(history, Isolation.UNCOMMITTED)
        _, records = first(each for each in transactions(history, Fate.ABORTED) if each[1][0].value in at)
        place, offset = at[records[0].value]
        return with_record(history, (offset, records[0].value), place, isolation_and_when)

    return plant


def aborted_after_a_refused_commit(history: list[Op]) -> list[Op]:
    at = shown(history, Isolation.COMMITTED)
    ended = {op.transaction for op in history if isinstance(op, End) and op.outcome is Outcome.UNKNOWN}
    unknown = (each for each, records in transactions(history, Fate.UNKNOWN) if records[0].value in at)
    transaction = first(each for each in unknown if each.name in ended)

    def acknowledged(op: End) -> dict:
        return {"committing": False, "outcome": Outcome.OK} if op.transaction == transaction.name else {}

    return edit(history, End, acknowledged)


def dirty(isolation: Isolation) -> Plant:
    def plant(history: list[Op]) -> list[Op]:
        live = shown(history, isolation, final=False)
        transaction, records = first(each for each in transactions(history, Fate.COMMITTED) if each[1][0].value in live)

        def early(op: Poll) -> dict:
            shows = is_live(isolation)(op) and any(value == records[0].value for _, value in op.records)
            return {"end_us": transaction.begin_us} if shows else {}

        return edit(history, Poll, early)

    return plant


def torn(history: list[Op]) -> list[Op]:
    at = shown(history, Isolation.COMMITTED)
    several = (each for each in transactions(history, Fate.UNKNOWN) if len(each[1]) > 1 and each[1][0].value in at)
    _, records = first(several)
    return without(history, {records[-1].value})


def zombie(history: list[Op]) -> list[Op]:
    last = {transaction.producer: transaction for transaction in fold(history).transactions.values()}
    transaction = first(each for each in last.values() if each.fate is Fate.COMMITTED)
    successor = Init(
        process="other",
        producer="other#1",
        transactional_id=transaction.transactional_id,
        start_us=transaction.begin_us,
        end_us=transaction.begin_us,
        outcome=Outcome.OK,
    )
    return [*history, successor]


def duplicate(history: list[Op]) -> list[Op]:
    _, records = first(transactions(history, Fate.COMMITTED))
    place = records[0].place
    again = (end_of(history, place) + 1, records[0].value)
    return with_record(
        with_record(history, again, place, is_final(Isolation.COMMITTED)), again, place, is_final(Isolation.UNCOMMITTED)
    )


def swap(history: list[Op], one: str, other: str) -> list[Op]:
    """Let two values have changed places for all readers and delivery reports."""
    places = shown(history, Isolation.UNCOMMITTED)
    names = {one: other, other: one}
    swapped = edit(history, Poll, lambda op: {"records": [(at, names.get(value, value)) for at, value in op.records]})
    sent = {op.transaction: [value for _, _, value in op.records] for op in history if isinstance(op, Begin)}

    def delivered(op: End) -> dict:
        values = sent[op.transaction]
        return {
            "offsets": [
                places[names[value]][1] if value in names else at for value, at in zip(values, op.offsets, strict=True)
            ]
        }

    return edit(swapped, End, delivered)


def reordered(history: list[Op]) -> list[Op]:
    for _, records in transactions(history, Fate.COMMITTED):
        for one, other in pairwise(records):
            if one.place == other.place:
                return swap(history, one.value, other.value)
    raise CannotPlant


def reordered_in_time(history: list[Op]) -> list[Op]:
    committed = list(transactions(history, Fate.COMMITTED))
    for first_one, records in committed:
        for later, others in committed:
            end_us = first_one.end_us
            if first_one.producer != later.producer and end_us is not None and end_us < later.begin_us:
                for one in records:
                    for other in others:
                        if one.place == other.place:
                            # Those who saw them at their places in time saw something else.
                            ops = [op for op in history if not isinstance(op, Poll) or op.final or op.topic != "append"]
                            return swap(ops, one.value, other.value)
    raise CannotPlant


def outputs_reordered(history: list[Op]) -> list[Op]:
    for transaction, records in transactions(history, Fate.COMMITTED, "etl-out"):
        if len(records) > 1:

            def swapped(op: Begin, name: str = transaction.name) -> dict:
                return {"sources": op.sources[::-1]} if op.transaction == name else {}

            return edit(history, Begin, swapped)
    raise CannotPlant


def inconsistent_delivery(history: list[Op]) -> list[Op]:
    at = shown(history, Isolation.COMMITTED)
    transaction, records = first(transactions(history, Fate.COMMITTED))
    places = (offset for place, offset in at.values() if place == records[0].place and offset != records[0].delivered)
    wrong = first(places)

    def misreported(op: End) -> dict:
        return {"offsets": [wrong, *op.offsets[1:]]} if op.transaction == transaction.name else {}

    return edit(history, End, misreported)


def inconsistent_readers(history: list[Op]) -> list[Op]:
    live = is_live(Isolation.UNCOMMITTED)
    poll = first(op for op in history if isinstance(op, Poll) and live(op) and op.topic == "append")
    offset, _ = poll.records[0]
    never = Begin(
        process="other",
        producer="other#1",
        transactional_id="other",
        transaction="other.1",
        at_us=poll.start_us,
        records=[(poll.topic, poll.partition, "other.1/0")],
    )
    changed = msgspec.structs.replace(poll, records=[(offset, "other.1/0"), *poll.records[1:]])
    return [changed if op is poll else op for op in [*history, never]]


def nonmonotonic(history: list[Op]) -> list[Op]:
    poll = first(op for op in history if isinstance(op, Poll) and is_live(Isolation.COMMITTED)(op) and op.session)
    changed = msgspec.structs.replace(poll, records=[*poll.records, poll.records[0]])
    return [changed if op is poll else op for op in history]


def lost_between_two_attempts(history: list[Op]) -> list[Op]:
    """Let a final reader that crashed have got what the second one, which came to the end, did not."""
    return edit(history, ReadTo, lambda op: {"process": f"final-{op.isolation}{'-2' if op.topic == 'append' else ''}"})


def skipped(isolation: Isolation) -> Plant:
    def plant(history: list[Op]) -> list[Op]:
        polls = (op for op in history if isinstance(op, Poll) and is_live(isolation)(op) and op.session)
        poll = first(op for op in polls if len(op.records) > 1)
        changed = msgspec.structs.replace(poll, records=poll.records[1:])
        return [changed if op is poll else op for op in history]

    return plant


def lso_back(history: list[Op]) -> list[Op]:
    samples = [op for op in history if isinstance(op, Watermarks)]
    sample = first(op for op in samples[1:] if not op.final and op.partitions[0][2] > 2)
    topic, partition, _, high = sample.partitions[0]
    lower = msgspec.structs.replace(sample, partitions=[(topic, partition, 0, high), *sample.partitions[1:]])
    if not any(op.partitions[0][2] > 0 for op in samples[: samples.index(sample)]):
        raise CannotPlant
    return [lower if op is sample else op for op in history]


def hanging(history: list[Op]) -> list[Op]:
    def higher(op: Watermarks) -> dict:
        topic, partition, stable, high = op.partitions[0]
        return {"partitions": [(topic, partition, stable, high + 1), *op.partitions[1:]]} if op.final else {}

    return edit(history, Watermarks, higher)


def unexpected(history: list[Op]) -> list[Op]:
    place = ("append", 0)
    return with_record(history, (end_of(history, place) + 1, "?"), place, is_final(Isolation.UNCOMMITTED))


def in_the_wrong_partition(history: list[Op]) -> list[Op]:
    _, records = first(transactions(history, Fate.ABORTED))
    topic, partition = place_of(records[0])
    place = (topic, (partition + 1) % 3)
    again = (end_of(history, place) + 1, records[0].value)
    return with_record(history, again, place, is_final(Isolation.UNCOMMITTED))


def group_ahead(history: list[Op]) -> list[Op]:
    ledger: Ledger = fold(history)
    at = shown(history, Isolation.COMMITTED)
    behind = (
        (place, offset)
        for place, offset in at.values()
        if place[0] == "etl-in" and offset >= (ledger.group_offsets or {}).get(place, 0)
    )
    place, offset = first(behind)
    return edit(
        history,
        GroupOffsets,
        lambda op: {
            "partitions": [each for each in op.partitions if tuple(each[:2]) != place] + [(*place, offset + 1)]
        },
    )


def group_behind(history: list[Op]) -> list[Op]:
    return edit(history, GroupOffsets, lambda op: {"partitions": []})


def transformed_twice(history: list[Op]) -> list[Op]:
    outputs = list(transactions(history, Fate.COMMITTED, "etl-out"))
    if len(outputs) < 2:
        raise CannotPlant
    (one, _), (other, _) = outputs[:2]

    def repeated(op: Begin) -> dict:
        return {"sources": [one.sources[0], *op.sources[1:]]} if op.transaction == other.name else {}

    return edit(history, Begin, repeated)


def read_in(transaction: Transaction, record: Record) -> Poll:
    return Poll(
        process=transaction.process,
        isolation=Isolation.COMMITTED,
        start_us=LATE_US,
        end_us=LATE_US,
        topic=place_of(record)[0],
        partition=place_of(record)[1],
        records=[(delivered_at(record), record.value)],
        transaction=transaction.name,
    )


def reads_in_a_circle(history: list[Op]) -> list[Op]:
    pairs = list(transactions(history, Fate.COMMITTED))
    if len(pairs) < 2:
        raise CannotPlant
    (one, ones), (other, others) = pairs[:2]
    return [*history, read_in(one, others[0]), read_in(other, ones[0])]


def read_against_writes(history: list[Op]) -> list[Op]:
    """Let a transaction read the one that wrote right behind it."""
    by_place: dict[Place, list[tuple[int, Transaction, Record]]] = {}
    for transaction, records in transactions(history, Fate.COMMITTED):
        for record in records:
            by_place.setdefault(place_of(record), []).append((delivered_at(record), transaction, record))
    for written in by_place.values():
        for (_, one, _), (_, other, record) in pairwise(sorted(written, key=lambda each: each[0])):
            if one is not other:
                return [*history, read_in(one, record)]
    raise CannotPlant
