"""The reference page is what the definitions say."""

from pathlib import Path

from exacta.verify.report.reference import page


def test_the_page_is_made_from_the_definitions() -> None:
    written = Path(__file__).parents[2] / "docs" / "reference" / "anomalies.md"
    assert written.read_text() == page(), "run `make docs`"
