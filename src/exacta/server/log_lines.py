"""The log of `exacta serve`: one line for each record, on standard error."""

import logging
import sys
import time


class OneLine(logging.Formatter):
    """`2026-01-31T12:00:00.123Z WARNING exacta.kafka message`, a traceback's lines joined by " | "."""

    converter = staticmethod(time.gmtime)

    def __init__(self) -> None:
        super().__init__("%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s %(message)s", datefmt="%Y-%m-%dT%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        return " | ".join(line.strip() for line in super().format(record).splitlines())


def configure_logging() -> None:
    """Log to stderr, one line for each record."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLine())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
