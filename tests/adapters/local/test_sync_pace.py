"""A disk is quick once it has been so for a while, and no longer when it was slow once."""

from exacta.adapters.local.sync_pace import QUICK_SECONDS, QUICK_SYNCS, Pace


def test_quick_after_so_many_quick_syncs_in_a_row() -> None:
    pace = Pace()
    for _ in range(QUICK_SYNCS):
        assert not pace.is_quick
        pace.took(QUICK_SECONDS / 2)
    assert pace.is_quick


def test_one_slow_sync_and_it_begins_anew() -> None:
    pace = Pace()
    for _ in range(QUICK_SYNCS * 2):
        pace.took(0.0)
    pace.took(QUICK_SECONDS)
    assert not pace.is_quick
    for _ in range(QUICK_SYNCS):
        pace.took(0.0)
    assert pace.is_quick
