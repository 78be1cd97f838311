"""PLAIN: one message with two names and a password."""

import pytest

from exacta.protocol.sasl.plain import PlainError, parse


def test_the_name_may_stand_there_once_or_twice():
    assert parse(b"\0alice\0secret") == ("alice", "secret")
    assert parse(b"alice\0alice\0secret") == ("alice", "secret")


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        (b"", "something other"),
        (b"alice\0secret", "something other"),
        (b"\0alice\0secret\0", "something other"),
        (b"\0\0secret", "no name or no password"),
        (b"\0alice\0", "no name or no password"),
        (b"bob\0alice\0secret", "for another user"),
        (b"\0al\xffice\0secret", "not text"),
    ],
)
def test_what_is_no_login(message, sentence):
    with pytest.raises(PlainError, match=sentence):
        parse(message)


def test_no_password_is_shown():
    assert "secret" not in repr(parse(b"\0alice\0secret"))
