"""Every API in every version that both brokers serve gets the same error codes; the page names all that Kafka offers.

Runs as `test_differential.py` does, but for all versions. The requests are about topics, groups and transactional ids
that nobody has made, so that hardly anything changes; what follows on one another is for the other tests here.
"""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest
from website.pages.protocol import UNSERVED

from exacta.kafka.handlers import HANDLERS
from exacta.protocol.kafka.apis import API, OUR_OWN, ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k18_api_versions import ApiVersionsRequest
from exacta.protocol.kafka.schema import Message
from tests.differential.agree import marks
from tests.differential.side import NOT_YET, PATIENCE_S, Side
from tests.kafka.access_cases import CASES
from tests.kafka.access_requests import Names
from tests.kafka.wire import Wire

pytestmark = marks

LEFT_OUT = {
    ApiKey.METADATA: "Kafka makes the topic after it has answered, Exacta before",
    ApiKey.DESCRIBE_ACLS: "the request is none, upon which Kafka hangs up",
    ApiKey.CREATE_ACLS: "the same",
    ApiKey.DELETE_ACLS: "the same",
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: "without an authorizer nobody sets keys here (decision 0065)",
}
ANY_TIME_MS = {"timeout_ms": 10_000, "rebalance_timeout_ms": 5_000}
"""Kafka answers REQUEST_TIMED_OUT where a request gives it no time, and carries it out all the same."""


def offered(side: Side) -> dict[int, tuple[int, int]]:
    """Return the versions that a broker offers."""
    ranges = side.wire.ask(ApiVersionsRequest(), 0).api_keys
    return {each.api_key: (each.min_version, each.max_version) for each in ranges}


def request(key: ApiKey, version: int) -> Message:
    """Return a request about what is not there."""
    name = f"{key.name}-{version}"
    made = CASES[key].build(version, Names(topics=[f"{name}-t"], groups=[f"{name}-g"], transactional_ids=[f"{name}-x"]))
    times = {field: ms for field, ms in ANY_TIME_MS.items() if field in made.__struct_fields__}
    return msgspec.structs.replace(made, **times)


def codes(answer: Any, path: str = "") -> dict[str, str]:
    """Return all error codes in an answer, by where they are."""
    found: dict[str, str] = {}
    for field in answer.__struct_fields__:
        value = getattr(answer, field)
        if field.endswith("error_code"):
            found[path + field] = ErrorCode(value).name
        for number, each in enumerate(value if isinstance(value, list) else []):
            if isinstance(each, msgspec.Struct):
                found |= codes(each, f"{path}{field}[{number}].")
    return found


def answered(side: Side, key: ApiKey, version: int) -> dict[str, str]:
    """Ask until the coordinators have loaded; return the error codes."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        wire = Wire(side.address)
        found = codes(wire.ask(request(key, version), version))
        wire.socket.close()
        if not NOT_YET.intersection(map(ErrorCode.__getitem__, found.values())) or time.monotonic() > deadline:
            return found


def test_what_kafka_offers_is_served_or_listed(sides: tuple[Side, Side]) -> None:
    kafkas, ours = map(offered, sides)
    listed = {key for apis in UNSERVED.values() for key in apis}
    excused = listed | {key for key, handler in HANDLERS.items() if handler.newer}
    served = {
        key: ours[key][0] <= first and last <= ours[key][1] for key, (first, last) in kafkas.items() if key in ours
    }
    assert not [(key, kafkas[key]) for key in kafkas.keys() - excused if not served.get(key)]


@pytest.mark.parametrize("key", [key for key in CASES if key not in OUR_OWN and key not in LEFT_OUT])
def test_error_codes(sides: tuple[Side, Side], key: ApiKey) -> None:
    ranges = [offered(side)[key] for side in sides]
    for version in range(max(first for first, _ in ranges), min(last for _, last in ranges) + 1):
        if version not in API[key].versions:
            continue  # which Produce of before Kafka 0.11 is
        kafkas, ours = (answered(side, key, version) for side in sides)
        assert ours == kafkas, f"version {version}"
