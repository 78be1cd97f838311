"""The page: one file that needs nothing else, and shows each anomaly with what lay around it."""

from html.parser import HTMLParser

import pytest

from exacta.verify.analysis.anomalies import Kind
from exacta.verify.analysis.verdict import analyse
from exacta.verify.history import Op, Poll
from exacta.verify.report.context import contexts
from exacta.verify.report.page import render
from tests.verify import planted
from tests.verify.model import clean_history


class Checked(HTMLParser):
    """Checks that elements are nested, and collects what they refer to."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.references: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.references += [value or "" for name, value in attributes if name in ("src", "href", "xlink:href")]
        if tag not in ("meta", "line"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def page_of(history: list[Op]) -> tuple[str, Checked]:
    page = render(analyse(history), lambda: history)
    parser = Checked()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    assert parser.references == []
    assert parser.seen.isdisjoint({"script", "link", "img", "iframe"})
    assert "http" not in page
    return page, parser


@pytest.mark.parametrize("plant", [planted.lost, planted.torn, planted.duplicate, planted.zombie, planted.hanging])
def test_an_anomaly_is_shown_with_what_lay_around_it(plant: planted.Plant) -> None:
    for seed in range(12):
        try:
            history = plant(clean_history(seed))
        except planted.CannotPlant:
            continue
        verdict = analyse(history)
        page, parser = page_of(history)
        (kind,) = verdict.anomalies
        example = verdict.examples[kind][0]
        assert f"id='{kind.title}'" in page
        assert "svg" in parser.seen
        for transaction in example.transactions:
            assert f"<title>{transaction}\n" in page


def test_a_clean_run_has_every_definition_and_no_section() -> None:
    seed = next(seed for seed in range(50) if not analyse(clean_history(seed)).counts)
    page, parser = page_of(clean_history(seed))
    assert "svg" not in parser.seen
    assert all(kind.title in page for kind in Kind)


def test_what_clients_send_is_escaped() -> None:
    history = planted.with_record(
        clean_history(1), (10**6, "<script>"), ("append", 0), lambda poll: poll.final and "uncommitted" in poll.process
    )
    page, _ = page_of(history)
    assert "&lt;script&gt;" in page


def test_only_so_much_is_shown_around_an_anomaly() -> None:
    history = planted.lost(clean_history(1))
    (anomaly,) = analyse(history).examples[Kind.LOST_WRITE]
    many = [op for op in history if isinstance(op, Poll) and (op.topic, op.partition) in anomaly.partitions] * 200
    (context,) = contexts([anomaly], lambda: [*history, *many])
    assert context.cut
    assert any(bar.label == anomaly.transactions[0] for bar in context.bars)
