"""The page of limits has the tables of the state as the code has them."""

from pathlib import Path

from exacta.cli.limits_reference import BEGIN, END, with_reference
from exacta.core.state.tables import BOUNDS

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "limits.md"


def test_the_page_is_up_to_date() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_reference(page), "run: make docs"
    _, _, rest = page.partition(BEGIN)
    tables, _, _ = rest.partition(END)
    assert all(f"| {bound.name} |" in tables for bound in BOUNDS)
