"""The anomalies of a history, in sentences: `anomalies` is the one question that is asked of it.

Owns the vocabulary of Jepsen's checker for Kafka, as far as this needs it: lost write, aborted read, torn transaction,
duplicate, reordering, inconsistent offsets, offset and data apart, a last stable offset that moves back. Of compacted
partitions it takes what was written for what is there: what may be missing is `analysis_compacted`'s. What holds of
sidecar topics alone is `analysis_sidecar`'s; here a record that was staged lies where the journal lets it enter.
"""

from collections import defaultdict
from collections.abc import Iterator

from simulation.analysis_compacted import compacted_anomalies
from simulation.analysis_sidecar import sidecar_anomalies
from simulation.history import History, Outcome, Partition, Place, Poll, Writing, whose


def anomalies(history: History) -> list[str]:
    """Return every anomaly."""
    return [
        *history.refusals,
        *_writings(history),
        *_joint(history),
        *_duplicates(history),
        *_order(history),
        *_polls(history),
        *_torn_answers(history),
        *_moves_back(history),
        *_pushed(history),
        *_pushed_uncommitted(history),
        *_pipelines(history),
        *_read_by_pulsar(history),
        *compacted_anomalies(history),
        *sidecar_anomalies(history),
    ]


def _whole(history: History) -> dict[Place, Partition]:
    """Return every partition, as if nothing had been compacted."""
    return {**history.final, **{place: each for place, each in history.written.items() if place in history.final}}


def _kept(history: History, writing: Writing) -> dict[bytes, tuple[Place, int | None]]:
    """Return the acknowledged values that nobody has deleted since, with their places; None: it has not entered."""
    found: dict[bytes, tuple[Place, int | None]] = {}
    for value, told in writing.acknowledged.items():
        place = writing.values[value]
        offset = history.offset_of(place, told)
        final = history.final.get(place)
        if final is not None and (offset is None or offset >= final.log_start):
            found[value] = place, offset
    return found


def _lies(log: Partition, offset: int | None, value: bytes) -> bool:
    return offset is not None and log.committed.get(offset) == value


def _writings(history: History) -> Iterator[str]:
    whole = _whole(history)
    visible = {value for log in (*whole.values(), *history.final.values()) for value in log.committed.values()}
    seen_committed = {value for poll in history.polls if poll.committed for _, value in poll.records}
    for writing in history.writings.values():
        kept = _kept(history, writing)
        if writing.outcome is Outcome.NO_COMMIT:
            for value in writing.values:
                if value in visible or value in seen_committed:
                    yield f"aborted read: {value!r} was never committed"
            continue
        there = {value for value, (place, offset) in kept.items() if _lies(whole[place], offset, value)}
        if len(there) == len(kept):
            continue
        lost = sorted(kept.keys() - there)
        if writing.outcome is not Outcome.UNKNOWN:
            yield f"lost write: {lost[:3]!r} of {writing.name}, which is {writing.outcome.value}"
        elif there or any(value in visible for value in kept):
            yield f"torn transaction: of {writing.name} {sorted(there)[:3]!r} are there, {lost[:3]!r} are not"


def _joint(history: History) -> Iterator[str]:
    """Check that what Kafka's side has written of a joint transaction has the outcome of what Pulsar's side has."""
    whole = _whole(history)
    for name, is_there in history.joint.items():
        writing = history.writings[name]
        kept = _kept(history, writing)
        odd = [value for value, (place, offset) in kept.items() if _lies(whole[place], offset, value) is not is_there]
        if odd:
            how = "committed" if is_there else "not committed"
            yield f"torn joint transaction: Pulsar's part of {name} is {how}, {odd[:3]!r} are otherwise"


def _pushed(history: History) -> Iterator[str]:
    """Yield what a consumer of a subscription got, and no reader of committed records may get."""
    for consumer, place, offset, value in history.pushed:
        writing = history.writings.get(whose(value))
        if writing is None or writing.outcome is Outcome.NO_COMMIT:
            yield f"aborted read: {value!r} was never committed, and {consumer} got it"
        final = history.final.get(place)
        if final is not None and offset >= final.log_start and final.committed.get(offset) != value:
            yield f"aborted read: {consumer} got {value!r} from {place} at {offset}, which is not committed there"


def _pushed_uncommitted(history: History) -> Iterator[str]:
    """Yield what a reader of uncommitted messages got, and what is not there: it is shown what is durable only."""
    there = {place: {offset: value for offset, value, _ in log.records} for place, log in _whole(history).items()}
    for consumer, place, offset, value in history.pushed_uncommitted:
        if whose(value) not in history.writings:
            yield f"inconsistent: nobody wrote {value!r}, and {consumer} got it"
        final = history.final.get(place)
        if final is not None and offset >= final.log_start and there[place].get(offset) != value:
            yield f"lost read: {consumer} got {value!r} from {place} at {offset}, which is not there"


def _duplicates(history: History) -> Iterator[str]:
    places: dict[bytes, tuple[Place, int]] = {}
    for place, final in history.final.items():
        for offset, value, _ in final.records:
            if value in places:
                yield f"duplicate: {value!r} is at {places[value]} and at {(place, offset)}"
            places[value] = (place, offset)


def _order(history: History) -> Iterator[str]:
    number = {value: (n, k) for n, each in enumerate(history.writings.values()) for k, value in enumerate(each.values)}
    for place, final in history.final.items():
        last: dict[str, tuple[tuple[int, int], bytes]] = {}
        for _, value, _ in final.records:
            if value not in number:
                yield f"inconsistent: nobody wrote {value!r}, which is in {place}"
                continue
            producer = whose(value).partition("/")[0]
            before = last.get(producer)
            if before is not None and number[value] < before[0]:
                yield f"reordering: {value!r} comes after {before[1]!r} in {place}"
            last[producer] = number[value], value


def _polls(history: History) -> Iterator[str]:
    """Check that live readers have read what is there in the end, all of it and nothing else."""
    everything = {
        place: {offset: value for offset, value, _ in final.records} for place, final in history.final.items()
    }
    for poll in history.polls:
        final = history.final.get(poll.place)
        if final is None:
            continue
        if not poll.log_start <= poll.last_stable <= poll.high_watermark:
            yield f"inconsistent: {poll.reader} was told {poll}"
        if poll.place in history.written:
            continue
        there = final.committed if poll.committed else everything[poll.place]
        first = max(poll.from_offset, final.log_start)
        expected = {offset: there[offset] for offset in range(first, poll.next_offset) if offset in there}
        found = {offset: value for offset, value in poll.records if offset >= final.log_start}
        if found != expected:
            odd = sorted(set(found.items()) ^ set(expected.items()))[:3]
            how = "committed" if poll.committed else "uncommitted"
            yield f"inconsistent: {poll.reader} read {how} {poll.place} from {first} to {poll.next_offset} wrong: {odd}"


def _markers(history: History) -> Iterator[tuple[str, dict[Place, int]]]:
    """Yield every transaction that ended, with the offsets of its markers, or of the last records that have entered."""
    after: dict[tuple[Place, int], list[int]] = defaultdict(list)
    whole = _whole(history)
    for place, log in whole.items():
        for offset, producer_id in log.markers:
            after[place, producer_id].append(offset)
    found: dict[str, dict[Place, int]] = defaultdict(dict)
    for place, log in whole.items():
        for offset, value, producer_id in log.records:
            writing = history.writings.get(whose(value))
            if writing is None or writing.outcome is Outcome.PLAIN:
                continue
            marker = history.end_of_run(place, offset)
            if marker is None:
                marker = next((each for each in after[place, producer_id] if each > offset), None)
            if marker is not None:
                found[writing.name][place] = marker
    yield from found.items()


def _torn_answers(history: History) -> Iterator[str]:
    """Check that a reader is shown all of a transaction's end at once: all of an answer comes from one state (D2)."""
    answers: dict[str, dict[Place, Poll]] = defaultdict(dict)
    for poll in history.polls:
        if poll.place in history.final:
            answers[poll.answer][poll.place] = poll
    ended = [(name, markers) for name, markers in _markers(history) if len(markers) > 1]
    for polls in answers.values():
        if len(polls) < 2:
            continue
        for name, markers in ended:
            seen = {polls[place].high_watermark > marker for place, marker in markers.items() if place in polls}
            if len(seen) > 1:
                reader = next(iter(polls.values())).reader
                yield f"torn transaction: {reader} saw the end of {name} in one partition and not in another"


def _moves_back(history: History) -> Iterator[str]:
    last: dict[tuple[str, Place], Poll] = {}
    for poll in history.polls:
        before = last.get((poll.reader, poll.place))
        if before is not None and poll.place in history.final:
            now, then = ((each.log_start, each.last_stable, each.high_watermark) for each in (poll, before))
            if any(new < old for new, old in zip(now, then, strict=True)):
                yield f"moves back: {poll.reader} was told {then} of {poll.place}, then {now}"
        last[poll.reader, poll.place] = poll


def _read_by_pulsar(history: History) -> Iterator[str]:
    """Check that in the end Pulsar's readers get what Kafka's readers of committed records get."""
    for place, poll in history.by_pulsar.items():
        if place in history.written:
            continue
        first = poll.log_start
        found = {each for each in poll.records if each[0] >= first}
        expected = {each for each in history.final[place].committed.items() if each[0] >= first}
        if odd := sorted(found ^ expected)[:3]:
            yield f"inconsistent: in the end Pulsar's reader gets something else of {place} than Kafka's: {odd}"


def _pipelines(history: History) -> Iterator[str]:
    """Check that the pipelines' output was made from what their group has consumed, each record once."""
    made: dict[tuple[Place, int], bytes] = {}
    for final in history.final.values():
        for value in final.committed.values():
            if b"|" in value:
                topic, partition, offset = value.split(b"|")[1].decode().rsplit("/", 2)
                source = (topic, int(partition)), int(offset)
                if source in made:
                    yield f"offset and data apart: {made[source]!r} and {value!r} are made from the same record"
                made[source] = value
    for place in sorted(history.pipeline_inputs):
        end = history.committed_offsets.get(place, 0)
        final = history.final.get(place, Partition())
        consumed = {offset for offset in final.committed if offset < end}
        produced = {offset for where, offset in made if where == place}
        if consumed != produced:
            odd = sorted(consumed ^ produced)[:5]
            yield f"offset and data apart: {place} is consumed up to {end}, but not so the output for {odd}"
