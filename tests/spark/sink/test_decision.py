"""The decision record comes back from its pieces, and is not guessed about."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exacta.spark.sink import decision
from exacta.spark.sink.decision import Decision, DecisionEntry, UnreadableDecision

entries = st.builds(
    DecisionEntry,
    task=st.integers(0, 2**32 - 1),
    attempt=st.integers(0, 2**16 - 1),
    producer_id=st.integers(0, 2**63 - 1),
    producer_epoch=st.integers(0, 2**15 - 1),
)


@given(st.lists(entries, max_size=900), st.text(max_size=1000), st.integers(0, 2**40))
def test_a_record_comes_back_from_pieces_that_fit(listed, location, batch_id):
    shown = decision.shown_location(location)
    made = Decision(batch_id, len(listed) + 3, "a query", shown, "0" * 32, tuple(listed), 7, "a name", "an application")
    pieces = decision.pack(made)
    assert all(len(piece.encode()) <= decision.MOST_BYTES for piece in pieces)
    assert decision.pieces_of(pieces[0]) == len(pieces)
    assert decision.origin_of(pieces[0]) == ("a query", shown, True, "a name", "an application")
    assert decision.unpack(made.offset, pieces) == made


def test_a_record_that_decides_nothing_is_not_taken_for_batch_0():
    made = Decision.none_yet("a query", "file:/a", "a name")
    (piece,) = decision.pack(made)
    assert decision.origin_of(piece) == ("a query", "file:/a", False, "a name", "")
    assert decision.unpack(made.offset, [piece]) == made
    assert (made.offset, made.batch_id, made.is_one) == (0, -1, False)
    # A version that knows only the first form refuses it.
    assert '"form":1' not in piece


@pytest.mark.parametrize("text", ["", "x", "[]", '{"form": 2}', '{"form": 1, "entries": "!"}', '{"form":1}'])
def test_a_damaged_record_is_not_guessed_about(text):
    with pytest.raises(UnreadableDecision):
        decision.unpack(1, [text])
