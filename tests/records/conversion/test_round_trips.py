"""A message of one protocol comes back from the other one as it was, but for the losses that are named."""

from pathlib import Path

import pytest
from hypothesis import given

from exacta.ports.record_format import LogEntry
from exacta.records.conversion import to_kafka, to_pulsar
from tests.records.conversion.batches import (
    LARGEST_ENTRY,
    MOST_BYTES,
    KafkaBatch,
    PulsarEntry,
    kafka_batches,
    pulsar_entries,
    read_kafka,
    read_pulsar,
)
from tests.records.conversion.losses import OF_KAFKAS, OF_PULSARS, Loss, there_and_back

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "conversion.md"


def kafka_pulsar_kafka(batch: LogEntry) -> KafkaBatch:
    (entry,) = to_pulsar(batch, singly=False, allowed_bytes=MOST_BYTES, largest_entry=LARGEST_ENTRY)
    return read_kafka(to_kafka(entry.batch, allowed_bytes=MOST_BYTES))


def pulsar_kafka_pulsar(entry: LogEntry) -> PulsarEntry:
    batch = to_kafka(entry.batch, allowed_bytes=MOST_BYTES)
    again = entry._replace(batch=batch)
    (back,) = to_pulsar(again, singly=False, allowed_bytes=MOST_BYTES, largest_entry=LARGEST_ENTRY)
    return read_pulsar(back)


@given(kafka_batches())
def test_kafkas_batches_come_back(batch: LogEntry) -> None:
    original, back = read_kafka(batch.batch), kafka_pulsar_kafka(batch)
    assert back.codec in (original.codec, 0)
    assert back == there_and_back(original, OF_KAFKAS)._replace(codec=back.codec)


@given(pulsar_entries())
def test_pulsars_entries_come_back(entry: LogEntry) -> None:
    original = read_pulsar(entry)
    if not original.messages:
        assert read_kafka(to_kafka(entry.batch, allowed_bytes=MOST_BYTES)).records == ()
        return
    back = pulsar_kafka_pulsar(entry)
    assert back.codec in (original.codec, 0)
    assert back == there_and_back(original, OF_PULSARS)._replace(codec=back.codec)


@pytest.mark.parametrize("loss", OF_KAFKAS, ids=lambda loss: loss.name)
def test_a_loss_of_kafkas_is_one(loss: Loss[KafkaBatch]) -> None:
    original = read_kafka(loss.example.batch)
    assert kafka_pulsar_kafka(loss.example) == there_and_back(original, OF_KAFKAS)
    assert loss.lose(original) != original


@pytest.mark.parametrize("loss", OF_PULSARS, ids=lambda loss: loss.name)
def test_a_loss_of_pulsars_is_one(loss: Loss[PulsarEntry]) -> None:
    original = read_pulsar(loss.example)
    assert pulsar_kafka_pulsar(loss.example) == there_and_back(original, OF_PULSARS)
    assert loss.lose(original) != original


TESTED_ELSEWHERE = {
    "the offsets of an opaque batch": "test_opaque.py",
    "an opaque entry": "test_opaque.py",
    "the codec, where it does not pay": "test_into_kafka.py",
}


def test_the_page_lists_the_losses_and_no_others() -> None:
    _, section = PAGE.read_text().split("## What a round trip loses")
    rows = [line.split("|")[1].strip() for line in section.splitlines() if line.startswith("| ")]
    named = [*(loss.name for loss in OF_KAFKAS), *(loss.name for loss in OF_PULSARS)]
    assert sorted(row for row in rows if row != "loss") == sorted([*named, *TESTED_ELSEWHERE])
