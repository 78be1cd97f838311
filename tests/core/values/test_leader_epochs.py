"""Epochs of leaders, as Kafka's `LeaderEpochFileCache` answers for them."""

import pytest

from exacta.core.ids import Offset
from exacta.core.values.leader_epochs import MOST_EPOCHS, LeaderEpochs, end_of, epoch_at, last_epoch, led, trimmed

NOBODY: LeaderEpochs = ()
THREE: LeaderEpochs = ((0, Offset(0)), (2, Offset(5)), (4, Offset(9)))
"""Under the leaders of epochs 1 and 3 nothing was written."""


@pytest.mark.parametrize(
    ("epochs", "asked", "expected"),
    [
        (NOBODY, 0, (0, 12)),
        (NOBODY, 1, None),
        (NOBODY, -1, None),
        (THREE, -1, None),
        (THREE, 0, (0, 5)),
        (THREE, 1, (0, 5)),
        (THREE, 2, (2, 9)),
        (THREE, 3, (2, 9)),
        (THREE, 4, (4, 12)),
        (THREE, 5, None),
        (THREE[1:], 0, (0, 5)),
        (THREE[1:], 1, (1, 5)),
    ],
)
def test_where_an_epoch_ends(epochs: LeaderEpochs, asked: int, expected: tuple[int, int] | None) -> None:
    assert end_of(epochs, asked, 12) == expected


@pytest.mark.parametrize(("offset", "epoch"), [(0, 0), (4, 0), (5, 2), (8, 2), (9, 4), (20, 4)])
def test_which_epoch_a_record_is_of(offset: int, epoch: int) -> None:
    assert epoch_at(THREE, offset) == epoch
    assert epoch_at(NOBODY, offset) == 0


def test_an_epoch_without_records_gives_way_to_the_next() -> None:
    first = led(NOBODY, 1, Offset(3), Offset(0))
    assert first == ((0, 0), (1, 3))
    assert led(first, 2, Offset(3), Offset(0)) == ((0, 0), (2, 3))
    assert led(NOBODY, 1, Offset(3), Offset(3)) == ((1, 3),)
    assert last_epoch(first) == 1


def test_only_so_many_are_known() -> None:
    epochs = NOBODY
    for epoch in range(1, MOST_EPOCHS + 10):
        epochs = led(epochs, epoch, Offset(epoch), Offset(0))
    assert len(epochs) == MOST_EPOCHS
    assert end_of(epochs, 1, MOST_EPOCHS + 10) == (1, epochs[0][1])


@pytest.mark.parametrize(
    ("start", "left"),
    [(0, THREE), (3, ((0, 3), *THREE[1:])), (5, THREE[1:]), (6, ((2, 6), THREE[2])), (30, ((4, 30),))],
)
def test_what_deletion_leaves(start: int, left: LeaderEpochs) -> None:
    assert trimmed(THREE, Offset(start)) == left
    assert trimmed(NOBODY, Offset(start)) == NOBODY
