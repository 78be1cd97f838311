"""The row that decides: its table, swept, on each database."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from exacta.databases.database import Database
from exacta.databases.decisions import DEFINITION, Decisions, Pair
from exacta.databases.errors import TakenOver
from tests.databases.conftest import each_kind
from tests.databases.shop import Place
from tests.docstring_tables import docstring_table

ROOT = Path(__file__).parents[2]
BEFORE, NOW, NEXT_EPOCH, NEXT_ID = (7, 30_000), (8, 3), (8, 4), (9, 0)

pytestmark = each_kind


def test_the_page_prints_the_table_as_it_is_created(kind: str) -> None:
    (printed,) = re.findall("```sql\n(.*?);\n```", (ROOT / "docs/how-to/database.md").read_text(), re.DOTALL)
    assert printed == DEFINITION.strip().replace("IF NOT EXISTS ", "")


@pytest.fixture
def database(place: Place) -> Iterator[Database]:
    database = place.database()
    database.open(1000)
    yield database
    database.close()


@pytest.fixture
def decisions(database: Database) -> Decisions:
    decisions = Decisions(database, "cluster", "id")
    for _ in range(2):  # the second one finds the table
        decisions.make_table()
    return decisions


def decide(database: Database, decisions: Decisions, holder: Pair, pair: Pair | None) -> bool:
    with database.own_transaction():
        return decisions.confirm(holder) if pair is None else decisions.decide(holder, pair)


HOLDERS: dict[str, list[Pair | None]] = {
    "there is no row": [None],
    "an earlier one": [BEFORE],
    "P itself": [NOW],
    "a later one": [NEXT_EPOCH, NEXT_ID],
}
STATEMENTS = docstring_table("exacta.databases.decisions", "statement \\ the row's holder")


@pytest.mark.parametrize(
    ("statement", "holder", "cell"),
    [(row, holder, cell) for row, column, cell in STATEMENTS.cells() for holder in HOLDERS[column]],
)
def test_every_cell_of_the_table(
    database: Database, decisions: Decisions, statement: str, holder: Pair | None, cell: str
) -> None:
    decided, chosen = (7, 1), (8, 5)
    if holder is not None:
        decisions.take_over(holder)
        assert decide(database, decisions, holder, decided)
    known = None if holder is None else decided
    if statement == "take over (P)":
        if cell == "`TakenOver`":
            with pytest.raises(TakenOver):
                decisions.take_over(NOW)
        else:
            assert (cell, decisions.take_over(NOW)) == ("holder P", known)
    else:
        done = decide(database, decisions, NOW, chosen if statement == "decide (P, Q)" else None)
        assert done is (cell != "fenced")
        known = chosen if cell == "decided Q" else known
    assert decisions.take_over(NEXT_ID) == known


TAKE_OVERS = [
    # the row's holder, who takes over, whether it may
    (None, NOW, True),
    (BEFORE, NOW, True),
    (NOW, NOW, True),
    (NOW, NEXT_EPOCH, True),
    (NOW, NEXT_ID, True),
    (NEXT_EPOCH, NOW, False),
    (NEXT_ID, NEXT_EPOCH, False),
    (NOW, BEFORE, False),
]


@pytest.mark.parametrize(("present", "takes", "may"), TAKE_OVERS)
def test_only_a_later_one_takes_over(
    database: Database, decisions: Decisions, present: Pair | None, takes: Pair, may: bool
) -> None:
    if present is not None:
        assert decisions.take_over(present) is None
    if may:
        assert decisions.take_over(takes) is None
    else:
        with pytest.raises(TakenOver, match="another instance has taken over transactional id 'id'"):
            decisions.take_over(takes)
    holder = takes if may or present is None else present
    assert decide(database, decisions, holder, (8, 5))
    assert decisions.take_over(holder) == (8, 5)


@pytest.mark.parametrize("pair", [(8, 4), None])
def test_only_the_holder_decides(database: Database, decisions: Decisions, pair: Pair | None) -> None:
    decisions.take_over(BEFORE)
    assert decide(database, decisions, BEFORE, (8, 2))
    assert decisions.take_over(NOW) == (8, 2)
    for other in (BEFORE, NEXT_EPOCH, NEXT_ID):
        assert not decide(database, decisions, other, pair)
        assert decisions.take_over(NOW) == (8, 2)
    assert decide(database, decisions, NOW, pair)
    assert decisions.take_over(NOW) == (pair or (8, 2))


def test_a_transaction_without_messages_decides_no_pair(database: Database, decisions: Decisions) -> None:
    decisions.take_over(NOW)
    assert decide(database, decisions, NOW, None)
    assert decisions.take_over(NOW) is None


def test_other_ids_and_other_clusters_have_rows_of_their_own(database: Database, decisions: Decisions) -> None:
    others = [Decisions(database, "cluster", "id-2"), Decisions(database, "cluster-2", "id")]
    decisions.take_over(NOW)
    for other in others:
        assert other.take_over(BEFORE) is None
        assert decide(database, other, BEFORE, (7, 1))
    assert decide(database, decisions, NOW, (8, 3))
    assert [each.take_over(NEXT_ID) for each in (decisions, *others)] == [(8, 3), (7, 1), (7, 1)]


def test_what_is_rolled_back_is_not_decided(database: Database, decisions: Decisions) -> None:
    decisions.take_over(NOW)
    database.begin()
    assert decisions.decide(NOW, (8, 3))
    database.rollback()
    assert decisions.take_over(NOW) is None
