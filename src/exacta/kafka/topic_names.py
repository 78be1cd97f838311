"""The names that Kafka allows topics to have."""

import re

_LEGAL_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")

LEGAL_NAMES = "a topic's name has 1 to 249 letters and digits of ASCII, '.', '_' and '-', and is neither '.' nor '..'"
"""What `is_legal_name` asks for, in words."""


def is_legal_name(topic: str) -> bool:
    """Say whether Kafka allows a topic of this name."""
    return _LEGAL_NAME.fullmatch(topic) is not None and topic not in (".", "..")
