"""Rejections as Pulsar's errors: nothing is forgotten, and clients do what we mean."""

import pytest

from exacta.core.rejections import Rejection
from exacta.front.words import words_of
from exacta.protocol.pulsar.messages_pb2 import ServerError
from exacta.pulsar.errors import CANNOT_HAPPEN_HERE, CODES, RETRIED_SENDS, send_error, server_error


def test_the_table_is_total_and_names_nothing_else() -> None:
    assert set(CODES) | CANNOT_HAPPEN_HERE == set(Rejection)
    assert not set(CODES) & CANNOT_HAPPEN_HERE


@pytest.mark.parametrize("rejection", list(CODES))
def test_every_answer_has_a_code_that_says_something_and_a_text(rejection: Rejection) -> None:
    """The Go client takes an answer without a text for success."""
    assert server_error(rejection) != ServerError.UnknownError
    assert words_of(rejection)


@pytest.mark.parametrize("rejection", list(CODES))
def test_a_send_that_cannot_succeed_is_not_sent_for_ever(rejection: Rejection) -> None:
    """For every other code the Go client closes its connection and sends the message once more."""
    assert (send_error(rejection) == ServerError.NotAllowedError) is (rejection not in RETRIED_SENDS)
