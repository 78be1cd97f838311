"""Files that an earlier version has written are read, and hold what they held then.

`tests/engine/corpus/format_<n>_events_<m>` is a data directory, committed as bytes, with the state that it holds.
`python -m tests.engine.corpus` makes the one of the present format and schema. Until the first release a later issue
may replace it, and one line in CHANGELOG.md says so. One of an older schema that this version reads is never written
again: only its expected state gets the fields that came later, with what they are taken for.
"""

import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any, cast, get_args

import pytest

from exacta.adapters.local import LocalJournal
from exacta.adapters.local.damage.inspection import SoundGroup, inspect
from exacta.adapters.local.files import PosixFiles
from exacta.core.event_codec import DurableEvent, decode_event
from exacta.core.snapshot import replayed
from exacta.core.state.state import State
from exacta.core.values.limits import Limits
from exacta.engine.log_reader import LogReader
from exacta.engine.reading import BatchReader, Read
from exacta.engine.schema import SCHEMA
from exacta.ports.scheduler import Scheduler
from exacta.protocol.kafka.records import iter_batches
from exacta.records.record_format import KafkaRecordFormat
from tests.adapters.turns import Turns
from tests.engine.corpus import DIRECTORY, EXPECTED
from tests.engine.corpus.describing import described

CORPUS = sorted(path for path in DIRECTORY.parent.iterdir() if path.name.startswith("format_"))


def held_by(directory: Path) -> dict[str, Any]:
    """Open the journal in a directory; return its state, and the batches of each partition."""
    turns = Turns()
    journal = LocalJournal.open(directory, turns.call_soon, schema=SCHEMA)
    try:
        blob, events = journal.replay()
        state = replayed(blob, events, Limits())
        return {"state": described(state), "batches": _batches(journal, turns, state)}
    finally:
        journal.close()


def _batches(journal: LocalJournal, turns: Turns, state: State) -> dict[str, Any]:
    found: dict[str, Any] = {}
    log = LogReader(journal, state.partitions)
    reader = BatchReader(log, KafkaRecordFormat(), cast("Scheduler", turns))  # no time passes here
    for partition in state.partitions.values():
        extents = log.find(partition.partition_id, partition.log_start_offset, partition.next_offset, 1 << 20)
        read: list[Read] = turns.wait(partial(reader.read, extents))
        assert not any(each.fault for each in read)
        data = b"".join(bytes(each.batches) for each in read)
        found[f"{partition.topic}-{partition.index}"] = [
            [header.base_offset, header.last_offset, header.magic, header.producer_id, header.crc]
            for header, _ in iter_batches(data)
        ]
    return found


@pytest.fixture(params=CORPUS, ids=lambda path: path.name)
def corpus(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Any]:
    """Return a copy of a directory, and what is expected of it."""
    journal = tmp_path / "journal"
    shutil.copytree(request.param / "journal", journal)
    return journal, json.loads((request.param / EXPECTED).read_text())


def test_it_holds_what_it_held(corpus: tuple[Path, Any]) -> None:
    journal, expected = corpus
    assert held_by(journal) == expected
    assert held_by(journal) == expected, "opened by this version"


def test_nothing_in_it_is_taken_for_damage(corpus: tuple[Path, Any]) -> None:
    journal, _ = corpus
    assert [each for each in inspect(PosixFiles(journal), SCHEMA) if not isinstance(each, SoundGroup)] == []


def test_it_holds_every_event_in_a_snapshot_and_behind_it() -> None:
    events: list[tuple[int, type]] = []
    files = PosixFiles(DIRECTORY / "journal")
    snapshot = max(int(name.removesuffix(".snapshot")) for name in files.names() if name.endswith(".snapshot"))
    for place in inspect(files, SCHEMA):
        assert isinstance(place, SoundGroup)
        events += [(place.group.position, type(decode_event(entry.event))) for entry in place.group.entries]
    every = set(get_args(DurableEvent))
    assert {kind for position, kind in events if position < snapshot} == every
    assert {kind for position, kind in events if position >= snapshot} == every
