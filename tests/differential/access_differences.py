"""What Exacta answers otherwise than Apache Kafka to users who may do what they ask for, each with its reason.

There is no row for what a missing right leads to: that is the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from exacta.protocol.kafka.apis import ApiKey

ANY_FORM = ""


class Difference(NamedTuple):
    """An error code of Apache Kafka's, and the one that stands in its place here."""

    key: ApiKey
    form: str
    kafkas: str
    ours: str
    why: str


OTHERWISE = (
    Difference(
        ApiKey.METADATA,
        "making topics",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "NONE",
        "Apache Kafka makes the topic after it has answered",
    ),
    Difference(
        ApiKey.PRODUCE,
        ANY_FORM,
        "INVALID_TXN_STATE",
        "TRANSACTION_ABORTABLE",
        "the partition is in no transaction (differences.py)",
    ),
    Difference(
        ApiKey.TXN_OFFSET_COMMIT,
        ANY_FORM,
        "INVALID_TXN_STATE",
        "ILLEGAL_GENERATION",
        "the group is in no transaction (differences.py)",
    ),
    Difference(
        ApiKey.END_TXN,
        ANY_FORM,
        "INVALID_TXN_STATE",
        "NONE",
        "there is nothing to abort (differences.py)",
    ),
)
LATER = {(ApiKey.CONSUMER_GROUP_HEARTBEAT, "by a pattern"): "assignment"}
"""What Apache Kafka tells later: it matches patterns after it has answered. What a pattern tells a member that may not
describe each topic is tested in tests/kafka/test_access_rights.py."""


def meant(key: ApiKey, form: str, kafkas: Any, ours: Any) -> bool:
    """Return whether the answers differ by rows of the table alone."""
    rows = [row for row in OTHERWISE if row.key is key and row.form in (ANY_FORM, form)]
    later = LATER.get((key, form))
    if later is not None and isinstance(kafkas, dict) and isinstance(ours, dict):
        kafkas, ours = ({name: each for name, each in told.items() if name != later} for told in (kafkas, ours))
    return _alike(rows, kafkas, ours)


def _alike(rows: list[Difference], kafkas: Any, ours: Any) -> bool:
    if kafkas == ours:
        return True
    if isinstance(kafkas, dict) and isinstance(ours, dict):
        differ = any((kafkas.get("error_code"), ours.get("error_code")) == (row.kafkas, row.ours) for row in rows)
        inside = kafkas.keys() | ours.keys() if not differ else {"name"}
        return all(_alike(rows, kafkas.get(field), ours.get(field)) for field in inside - {"error_code"}) and (
            differ or kafkas.get("error_code") == ours.get("error_code")
        )
    if isinstance(kafkas, list) and isinstance(ours, list):
        pairs = zip(sorted(kafkas, key=_name), sorted(ours, key=_name), strict=False)
        return len(kafkas) == len(ours) and all(_alike(rows, *pair) for pair in pairs)
    return False


def _name(element: Any) -> str:
    return str(element.get("name", element)) if isinstance(element, dict) else str(element)
