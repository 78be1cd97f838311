"""Passwords that were right a moment ago: no second derivation, and nothing for others."""

from exacta.security import remembered
from exacta.security.remembered import FOR_S, RememberedPasswords


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_a_password_is_known_for_a_minute_with_its_own_key() -> None:
    clock = Clock()
    passwords = RememberedPasswords(clock)
    passwords.remember("alice", "secret", b"key")
    assert passwords.knows("alice", "secret", b"key")
    for other in (("alice", "secret", b"new"), ("alice", "Secret", b"key"), ("bob", "secret", b"key")):
        assert not passwords.knows(*other)
    assert not passwords.knows("alices", "ecret", b"key"), "the parts are told apart"
    clock.now_s = FOR_S
    assert not passwords.knows("alice", "secret", b"key")


def test_the_oldest_is_forgotten() -> None:
    passwords = RememberedPasswords(Clock())
    for number in range(remembered.MOST + 1):
        passwords.remember(f"user {number}", "secret", b"key")
    assert not passwords.knows("user 0", "secret", b"key")
    assert passwords.knows("user 1", "secret", b"key")
