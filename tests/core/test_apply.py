"""What the fold keeps in memory of what passes through it."""

import sys

from exacta.core.apply import apply
from exacta.core.events import ProducerBound
from exacta.core.ids import Cause, ProducerEpoch, ProducerId
from exacta.core.state.state import State


def test_a_client_id_is_held_once_but_not_for_ever() -> None:
    state = State()
    for transactional_id in "xy":
        apply(
            state,
            ProducerBound(
                transactional_id=transactional_id,
                producer_id=ProducerId(0),
                producer_epoch=ProducerEpoch(0),
                transaction_timeout_ms=1000,
                at_ms=0,
                previous_producer_id=ProducerId(-1),
                previous_producer_epoch=ProducerEpoch(-1),
                cause=Cause.NEW_INSTANCE,
                client_id=named(),
            ),
        )
    held = state.transactional_ids["x"].client_id
    assert held == named()
    assert held is state.transactional_ids["y"].client_id
    assert held is not sys.intern(named()), "what is interned is never freed by CPython 3.12"


def named() -> str:
    """Return an object of its own."""
    return "-".join(["a", "client", "id"])
