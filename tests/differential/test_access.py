"""Who may do what is answered by Exacta as by Apache Kafka's authorizer, error by error: every API, every right.

A user without rights, users with one right alone, and users with all rights but one send each request in each version
that both brokers serve, about what is there and about what is not. Where an answer differs, `access_differences.py`
says why.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
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
from tests.differential.access_sides import HIDDEN, SEEN, USERS, AccessSide, User, rule, versions_of
from tests.differential.agree import marks
from tests.kafka.access_cases import LISTS
from tests.kafka.access_requests import Names
from tests.differential.side import PATIENCE_S
from tests.server.served import OPTIONS, Served
from tests.waiting import wait_until

pytestmark = marks

_BOTH = {
    "transaction.two.phase.commit.enable": "true",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "true",
}
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
    with (
        kafka(folder) as (local, secured),
        closing(Served(folder / "ours", {**OPTIONS, **_BOTH, "node.id": 1})) as ours,
        closing(AccessSide(local, secured)) as theirs_side,
        closing(AccessSide(address(ours.local), address(ours.secured))) as ours_side,
    ):
        yield theirs_side, ours_side


@contextmanager
def kafka(folder: Path):
    if "J46K" in os.environ:
        yield tuple(map(address, Path(os.environ["J46K"]).read_text().split()))
        return
    secured = Secured.at(folder / "secure", HOST)
    with Cluster(folder, fetch(), count=1, secured=secured, overrides=[f"{k}={v}" for k, v in _BOTH.items()]) as running:
        yield address(running.bootstrap), address(running.bootstrap_of("SASL_PLAINTEXT"))


def address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


def test_each_api_is_asked() -> None:
    assert {key for key, _ in ASKED} == HANDLERS.keys() - OUR_OWN


def ranges(sides: tuple[AccessSide, AccessSide], key: ApiKey) -> list[tuple[int, int]]:
    found = [side.admin.ask(ApiVersionsRequest(), 0).api_keys for side in sides]
    return [(each.min_version, each.max_version) for apis in found for each in apis if each.api_key == key]


def names_of(word: str, user: User, *, there: bool) -> Names:
    where = "here" if there else "away"
    word += os.environ.get("J46W", "")
    both = [f"{rank}-{word}-{where}-{user.name}" for rank in (SEEN, HIDDEN)]
    return Names(
        topics=list(AccessSide.here if there else AccessSide.away), groups=both, transactional_ids=both
    )


def ask(side: AccessSide, key: ApiKey, form: str, version: int, user: User, names: Names, *, there: bool) -> Any:
    """Return what a broker says to a request."""
    named = msgspec.structs.replace(names, ids=side.ids)
    text = repr(request(key, form, version, named))
    if there and (names.groups[0] in text or key in LISTS):
        named = msgspec.structs.replace(named, bound=side.furnish(named))
    made = request(key, form, version, named)
    assert made is not None
    try:
        side.wire(user).socket.settimeout(3)
        return side.told(side.wire(user).ask(made, version), names)
    except ConnectionError:
        side.hang_up(user)
        return "hangs up"
    except TimeoutError:
        side.hang_up(user)
        return "does not answer"


@pytest.mark.parametrize(("key", "form"), ASKED, ids=[f"{key.name}, {form}" for key, form in ASKED])
def test_the_same_is_refused(sides: tuple[AccessSide, AccessSide], key: ApiKey, form: str) -> None:
    differing = []
    for version in versions_of(ranges(sides, key)):
        if version not in API[key].versions:
            continue
        if request(key, form, version, names_of("x", USERS[0], there=True)) is None:
            continue
        word = f"{key}-{form.replace(' ', '-')}-{version}"
        rules = [
            rule(user, user.alone, names_of(word, user, there=there).groups[0])
            for user in USERS
            if user.alone is not None
            for there in (True, False)
        ]
        for side in sides:
            side.allow(*rules)
        for there in (True, False):
            for user in USERS:
                names = names_of(word, user, there=there)
                kafkas, ours = (ask(side, key, form, version, user, names, there=there) for side in sides)
                if key in CHANGES_TOPICS and "'NONE'" in repr((kafkas, ours)):
                    what = f"{user.name} changed topics by {key.name} {version} on one broker only"
                    wait_until(lambda: sides[0].topics() == sides[1].topics(), PATIENCE_S, what)
                    for side in sides:
                        side.restore()
                if kafkas != ours and not meant(key, form, kafkas, ours):
                    differing.append((version, there, user.name, kafkas, ours))
    if os.environ.get("SHOW"):
        with Path(os.environ["SHOW"]).open("a") as out:
            groups = {}
            for version, there, name, kafkas, ours in differing:
                texts = tuple(repr(each).replace(f"-{name}", "-USER").replace(f"-{version}{os.environ.get('J46W','')}-", "-V-") for each in (kafkas, ours))
                groups.setdefault((there, *texts), []).append((version, name))
            for (there, k, e), who in groups.items():
                print(key.name, form, "here" if there else "away", sorted({v for v, _ in who}), sorted({n for _, n in who}), "\n   K", k, "\n   E", e, file=out)
    assert not differing
