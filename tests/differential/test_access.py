"""Who may do what is answered by Exacta as by Apache Kafka's authorizer, error by error: every API, every right.

A user without rights, users with one right alone, and users with all rights but one send each request in each version
that both brokers serve, about what is there and about what is not. Where an answer differs, `access_differences.py`
says why.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import msgspec
import pytest
from benchmarks.kafka.cluster import Cluster
from benchmarks.kafka.distribution import fetch
from benchmarks.kafka.node import HOST
from benchmarks.kafka.security import Secured

from exacta.kafka.handlers import HANDLERS
from exacta.protocol.kafka.apis import API, OUR_OWN, ApiKey
from exacta.protocol.kafka.messages.k18_api_versions import ApiVersionsRequest
from tests.differential.access_differences import meant
from tests.differential.access_forms import FORMS, request
from tests.differential.access_sides import HIDDEN, SEEN, USERS, AccessSide, User
from tests.differential.agree import marks
from tests.differential.calls import HANGS_UP, SILENT
from tests.differential.group_brokers import KAFKAS
from tests.differential.side import PATIENCE_S
from tests.kafka.access_cases import LISTS
from tests.kafka.access_requests import Names
from tests.server.served import OPTIONS, Served
from tests.waiting import wait_until

pytestmark = marks

_BOTH = {
    "transaction.two.phase.commit.enable": "true",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "true",
}
MOST_SHOWN = 5
CHANGES_TOPICS = (ApiKey.METADATA, ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.CREATE_PARTITIONS)
ASKED = [
    (ApiKey(key), form)
    for key in sorted(HANDLERS.keys() - OUR_OWN, key=lambda key: (key not in LISTS, key))
    for form in FORMS[ApiKey(key)]
]
"""The lists come first, while there is little to list."""


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[AccessSide, AccessSide]]:
    """Apache Kafka and Exacta, with the same users and rules."""
    folder = tmp_path_factory.mktemp("access")
    overrides = [*(f"{name}={value}" for name, value in _BOTH.items()), *KAFKAS]
    secured = Secured.at(folder / "secure", HOST)
    with (
        Cluster(folder, fetch(), count=1, secured=secured, overrides=overrides) as kafka,
        Served(folder / "ours", {**OPTIONS, **_BOTH, "node.id": 1}) as exacta,
        closing(AccessSide(kafka.bootstrap, kafka.bootstrap_of("SASL_PLAINTEXT"))) as theirs,
        closing(AccessSide(exacta.local, exacta.secured)) as ours,
    ):
        yield theirs, ours


def test_each_api_is_asked() -> None:
    assert {key for key, _ in ASKED} == HANDLERS.keys() - OUR_OWN


@pytest.mark.parametrize(("key", "form"), ASKED, ids=[f"{key.name}, {form}" for key, form in ASKED])
def test_the_same_is_refused(sides: tuple[AccessSide, AccessSide], key: ApiKey, form: str) -> None:
    differing = []
    for version in versions(sides, key, form):
        word = f"{key}-{form.replace(' ', '-')}-{version}"
        for side in sides:
            side.allow_alone([names_of(word, user, there=there) for user in USERS for there in (True, False)])
        for there in (True, False):
            for user in USERS:
                names = names_of(word, user, there=there)
                kafkas, ours = (ask(side, key, form, version, user, names, there=there) for side in sides)
                if kafkas != ours and not meant(key, form, kafkas, ours):
                    differing.append((version, "here" if there else "away", user.name, kafkas, ours))
                if key in CHANGES_TOPICS and "'NONE'" in repr((kafkas, ours)):
                    restore(sides, f"version {version} for {user.name}")
    assert not differing, "\n".join([f"{len(differing)} differ; the first are", *map(repr, differing[:MOST_SHOWN])])


def versions(sides: tuple[AccessSide, AccessSide], key: ApiKey, form: str) -> list[int]:
    """Return the versions that both brokers serve, and in which there is this form."""
    told = [each for side in sides for each in side.admin.ask(ApiVersionsRequest(), 0).api_keys if each.api_key == key]
    first, last = max(each.min_version for each in told), min(each.max_version for each in told)
    names = names_of("x", USERS[0], there=True)
    return [
        version
        for version in range(first, last + 1)
        if version in API[key].versions and request(key, form, version, names) is not None
    ]


def names_of(word: str, user: User, *, there: bool) -> Names:
    """Return the names in one request: groups and transactional ids are its own, the topics are those of all."""
    both = [f"{rank}-{word}-{'here' if there else 'away'}-{user.name}" for rank in (SEEN, HIDDEN)]
    return Names(topics=list(AccessSide.here if there else AccessSide.away), groups=both, transactional_ids=both)


def ask(side: AccessSide, key: ApiKey, form: str, version: int, user: User, names: Names, *, there: bool) -> Any:
    """Return what a broker says to a request."""
    named = msgspec.structs.replace(names, ids=side.ids)
    if there and (names.groups[0] in repr(request(key, form, version, named)) or key in LISTS):
        named = msgspec.structs.replace(named, bound=side.furnish(key, version, named))
    made = request(key, form, version, named)
    assert made is not None
    try:
        return side.told(side.wire(user).ask(made, version), names)
    except ConnectionError:
        side.hang_up(user)
        return HANGS_UP
    except TimeoutError:
        side.hang_up(user)
        return SILENT


def restore(sides: tuple[AccessSide, AccessSide], what: str) -> None:
    """Wait until both brokers have the same topics, and bring them back into their state."""
    wait_until(
        lambda: sides[0].topics() == sides[1].topics(), PATIENCE_S, f"one broker alone has changed topics: {what}"
    )
    for side in sides:
        side.restore()
