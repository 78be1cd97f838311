"""Every example of the pages is run as it is printed, or is listed with the reason why it is not."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import exacta
from exacta.demo.processes import free_port
from tests.pages.blocks import PAGES, Block, blocks_of
from tests.pages.not_run import NO_EXAMPLE, NOT_RUN, why_no_example, why_not_run
from tests.pages.running import LANGUAGES, Addresses, Reader, pattern
from tests.pages.runs import RUNS, Run
from tests.spark.clusters import read_committed

BLOCKS = [block for page in PAGES for block in blocks_of(page)]


def lines(block: Block) -> list[str]:
    return [line for line in block.text.splitlines() if line.strip() and not line.startswith("#")]


def test_every_example_is_run_or_listed() -> None:
    assert len(BLOCKS) > 20
    forgotten = []
    for block in BLOCKS:
        if why_no_example(block) is not None or all(why_not_run(block.page, line) for line in lines(block)):
            continue
        runs = [run for run in RUNS if run.has(block)]
        if len(runs) != 1 or block.language not in LANGUAGES:
            forgotten.append(f"{block}, {block.language or 'no language'}: {len(runs)} runs")
    assert forgotten == [], "add a run, or the reason why there is none, to tests/pages/not_run.py"


def test_nothing_is_listed_that_is_not_there() -> None:
    printed = [(block.page, line) for block in BLOCKS for line in lines(block)]
    blocks = [(block.page, block.text) for block in BLOCKS]
    listed = [
        (page, start)
        for places, texts in ((NOT_RUN, printed), (NO_EXAMPLE, blocks))
        for page, start in places
        if not any(at == page and text.startswith(start) for at, text in texts)
    ]
    assert listed == []
    assert [str(run) for run in RUNS if not any(run.has(block) for block in BLOCKS)] == []


@contextmanager
def old_cluster(fill: Callable[[str], object] | None) -> Iterator[str]:
    """Run the broker that a page moves away from, if it has one; yield its address."""
    if fill is None:
        yield ""
        return
    with exacta.Broker() as broker:
        fill(broker.bootstrap_servers)
        yield broker.bootstrap_servers


@pytest.mark.timeout(600)
@pytest.mark.parametrize("run", [pytest.param(run, id=str(run), marks=[pytest.mark.spark] * run.spark) for run in RUNS])
def test_it_does_what_the_page_says(run: Run, tmp_path: Path) -> None:
    blocks = [block for block in BLOCKS if run.has(block) and why_no_example(block) is None]
    port, pulsar_port = free_port(), free_port()
    servers = f"127.0.0.1:{port}"
    broker = exacta.Broker(port=port, pulsar=run.pulsar, pulsar_port=pulsar_port, num_partitions=2)
    with old_cluster(run.old) as old:
        reader = Reader(run, Addresses(servers, f"127.0.0.1:{pulsar_port}", old), tmp_path)
        try:
            if not run.serves:
                broker.start()
            prepared = run.prepare(servers, tmp_path)
            reader.go_through(blocks)
            for topic, values in run.expects.items():
                assert Counter(value for _, _, value in read_committed(servers, topic)) == values
            assert re.search(run.prints, reader.printed_meanwhile, re.MULTILINE)
            del prepared
        finally:
            reader.end()
            broker.close()


def test_printed_output_stands_for_what_is_like_it() -> None:
    printed = pattern("…\nlost: 0, at 2026-11-22 11:20:00+01:00 (once)\n")
    assert re.search(printed, "a\nb\nlost: 17, at 2027-01-02 00:00:00+01:00 (once)\n", re.MULTILINE)
    for other in ("lost: 0, at 2026-11-22 11:20:00+01:00 (once)", "a\nlost: none, at 2026-11-22 11:20:00+01:00 (once)"):
        assert not re.search(printed, other, re.MULTILINE)
