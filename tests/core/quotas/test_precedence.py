"""The first of Kafka's eight levels that has a quota holds, and says who shares it: every set of levels is tried."""

from itertools import combinations, product

import pytest

from exacta.core.quotas.precedence import InForce, connection_rates, in_force
from exacta.core.values.quotas import EntityType, QuotaEntity, QuotaKey
from tests.docstring_tables import docstring_table

USER, CLIENT_ID, IP = EntityType
RATE, OTHER = QuotaKey.PRODUCER_BYTE_RATE, QuotaKey.CONSUMER_BYTE_RATE
U, C, ANY = "alice", "app", None
WORDS: dict[str, tuple[EntityType, str | None]] = {
    "the user": (USER, U),
    "any other user": (USER, ANY),
    "the client id": (CLIENT_ID, C),
    "any other client id": (CLIENT_ID, ANY),
}
SHARED: dict[str, tuple[str | None, str | None]] = {
    "the user's clients of this id": (U, C),
    "the user's clients of one id": (U, C),
    "all clients of the user": (U, None),
    "all clients of this id": (None, C),
    "all clients of one id": (None, C),
}
TABLE = docstring_table("exacta.core.quotas.precedence", "level")
LEVELS = [
    (
        tuple(WORDS[word.removeprefix("and ")] for word in TABLE[row, "the quota is for"].split(", ")),
        *SHARED[TABLE[row, "who shares it"]],
    )
    for row in TABLE.rows
]
"""The levels in their order, and who shares a quota of each."""


@pytest.mark.parametrize("has_client_id", [True, False])
def test_the_first_level_that_has_a_quota_holds(has_client_id: bool) -> None:
    others = {QuotaEntity(((USER, "bob"),)): {RATE: 99.0}, QuotaEntity(((CLIENT_ID, "x"),)): {RATE: 98.0}}
    for size in range(len(LEVELS) + 1):
        for chosen in combinations(range(len(LEVELS)), size):
            quotas = {QuotaEntity(LEVELS[each][0]): {RATE: float(each + 1)} for each in chosen}
            found = in_force({**others, **quotas}, RATE, U, C if has_client_id else "")
            fitting = [each for each in chosen if has_client_id or LEVELS[each][2] is None]
            expected = None
            if fitting:
                _, user, client_id = LEVELS[fitting[0]]
                expected = InForce(float(fitting[0] + 1), user, client_id)
            assert found == expected, (chosen, has_client_id)


def test_each_quota_is_looked_for_by_itself() -> None:
    for first, second in product(range(len(LEVELS)), repeat=2):
        quotas: dict[QuotaEntity, dict[QuotaKey, float]] = {}
        quotas.setdefault(QuotaEntity(LEVELS[first][0]), {})[RATE] = 1.0
        quotas.setdefault(QuotaEntity(LEVELS[second][0]), {})[OTHER] = 2.0
        for key, level, limit in ((RATE, first, 1.0), (OTHER, second, 2.0)):
            found = in_force(quotas, key, U, C)
            assert found == InForce(limit, *LEVELS[level][1:])


def test_an_address_may_be_written_in_several_ways() -> None:
    key = QuotaKey.CONNECTION_CREATION_RATE
    quotas = {
        QuotaEntity(((IP, "10.0.0.1"),)): {key: 1.0},
        QuotaEntity(((IP, "0:0::1"),)): {key: 2.0},
        QuotaEntity(((IP, None),)): {key: 3.0},
        QuotaEntity(((USER, U),)): {RATE: 4.0},
    }
    assert connection_rates(quotas) == {"10.0.0.1": 1.0, "::1": 2.0, None: 3.0}
