"""Points in time, as people type them and as they are shown."""

from datetime import UTC, datetime

_MOST_DIGITS = 18


def time_ms(text: str) -> int | None:
    """Return the ms since 1970 of such a number, or of a time like 2026-01-31T12:00:00Z; None where it is neither.

    A time that does not say its zone is one of this machine's.
    """
    if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS:
        return int(text)
    try:
        return max(0, int(datetime.fromisoformat(text).timestamp() * 1000))
    except (ValueError, OverflowError):
        return None


def time_in_words(at_ms: int) -> str:
    """Return a point in time by this machine's clock."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).astimezone().isoformat(" ", "seconds")


def now_ms() -> int:
    """Return this machine's time."""
    return int(datetime.now(UTC).timestamp() * 1000)
