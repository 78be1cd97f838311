"""The log of `exacta serve`: one line for each record, on standard error, as text or as JSON, and never a flood.

Theory of operation. Lines of one kind are those of one logger, level and text, whatever the values in it. Of one kind
at most `MOST` lines are written in `WINDOW_SECONDS`. Those after them are counted, and one line says how many there
were when the time is over. No line of the audit log is left out: a flood of them could hide one login.
"""

import logging
import sys
import threading
import time
from collections.abc import Callable

import msgspec

from exacta.security import audit

MOST = 20
WINDOW_SECONDS = 10.0
_MOST_KINDS = 1_000

LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("text", "json")
DEFAULT_LEVEL, DEFAULT_FORMAT = "info", "text"

logger = logging.getLogger("exacta.log")
_ALWAYS = frozenset({logger.name, audit.logger.name})
"""The areas all of whose lines are written."""


class OneLine(logging.Formatter):
    """`2026-01-31T12:00:00.123Z WARNING exacta.kafka message`, a traceback's lines joined by " | ".

    Clients choose names: what a terminal would not print is escaped.
    """

    converter = staticmethod(time.gmtime)

    def __init__(self) -> None:
        super().__init__("%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s %(message)s", datefmt="%Y-%m-%dT%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        text = " | ".join(line.strip() for line in super().format(record).splitlines())
        if text.isprintable():
            return text
        return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


class JsonLine(logging.Formatter):
    """One object: time, level, logger, message; the exception, if there is one; and the values that have names."""

    converter = staticmethod(time.gmtime)

    def format(self, record: logging.LogRecord) -> str:
        found: dict[str, object] = {
            "time": f"{self.formatTime(record, '%Y-%m-%dT%H:%M:%S')}.{int(record.msecs):03d}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if isinstance(record.args, dict):
            found["values"] = {name: value for name, value in record.args.items() if value != ""}
        if record.exc_info:
            found["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(found, enc_hook=str).decode()


class _Kind:
    __slots__ = ("began", "unsaid", "written")

    def __init__(self, began: float) -> None:
        self.began = began
        self.written = 0
        self.unsaid = 0


def never(seconds: float, tell: Callable[[], None]) -> None:
    """Call nothing: the owner of the filter tells what was left out."""


class Flood(logging.Filter):
    """Lets a few lines of each kind pass; `tell` says how many others there were. Any thread may log.

    `later` is called with a time in seconds and `tell`, when a line was left out and nothing is to be told yet. `clock`
    gives seconds from any moment on.
    """

    def __init__(
        self,
        later: Callable[[float, Callable[[], None]], object] = never,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self.later = later
        self._clock = clock
        self._lock = threading.Lock()
        self._kinds: dict[tuple[str, int, str], _Kind] = {}
        self._is_due = False

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a line is to be written."""
        if record.name in _ALWAYS:
            return True
        key, now = (record.name, record.levelno, str(record.msg)), self._clock()
        schedules = False
        with self._lock:
            kind = self._kinds.get(key)
            if kind is None or (now - kind.began >= WINDOW_SECONDS and not kind.unsaid):
                kind = self._kinds[key] = _Kind(now)
                self._forget(now)
            passes = kind.written < MOST
            if passes:
                kind.written += 1
            else:
                kind.unsaid += 1
                schedules, self._is_due = not self._is_due, True
        if schedules:
            self.later(WINDOW_SECONDS, self.tell)
        return passes

    def tell(self) -> None:
        """Write how many lines of each kind were left out, and begin to count again."""
        with self._lock:
            self._is_due = False
            told = [(key, kind.unsaid) for key, kind in self._kinds.items() if kind.unsaid]
            self._kinds.clear()
        for (name, level, text), unsaid in told:
            logger.log(level, "%d lines more of %s like this one: %s", unsaid, name, text)

    def _forget(self, now: float) -> None:
        """Keep the table small: texts are few, unless somebody puts values into them."""
        if len(self._kinds) > _MOST_KINDS:
            self._kinds = {
                key: kind for key, kind in self._kinds.items() if kind.unsaid or now - kind.began < WINDOW_SECONDS
            }


def configure_logging(level: str, form: str) -> Flood:
    """Log to stderr, one line for each record, in one of `FORMATS` and from one of `LEVELS` on.

    Returns the filter, whose owner may let it tell in time.
    """
    handler, flood = logging.StreamHandler(sys.stderr), Flood()
    handler.setFormatter(OneLine() if form == "text" else JsonLine())
    handler.addFilter(flood)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    return flood


def set_level(level: str) -> None:
    """Write lines from one of `LEVELS` on, but for areas that have a level of their own."""
    logging.getLogger("exacta").setLevel(logging.NOTSET)  # a level of all areas that was set at run time ends
    audit.logger.setLevel(logging.NOTSET)  # a level that it had kept when another one was set so
    logging.getLogger().setLevel(level.upper())
