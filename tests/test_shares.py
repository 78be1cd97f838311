"""Ten shares in a row make the whole of a sweep, each is repeated by its number, and the page tells of each sweep."""

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import shares
from tests.order import dealt, node_id, noted

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/explanation/tests.md").read_text()


@pytest.mark.parametrize("cut", [shares.share_of, shares.block_of])
@pytest.mark.parametrize("size", [10, 11, 99, 159])
def test_ten_shares_make_the_whole(
    cut: Callable[[range], list[int]], size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cuts = []
    for number in range(shares.SHARES):
        monkeypatch.setenv("SHARE", str(number))
        cuts.append(cut(range(size)))
    assert sorted(place for each in cuts for place in each) == list(range(size))
    assert {len(each) for each in cuts} <= {size // 10, size // 10 + 1}
    monkeypatch.setenv("SHARE", "all")
    assert cut(range(size)) == list(range(size))


def test_each_marked_sweep_runs_its_own_share(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [f"test_{test}[{case}]" for case in range(20) for test in ("a", "b")]
    monkeypatch.setenv("SHARE", "3")
    assert shares.share_of_cases(cases, name=str) == {f"test_{test}[{case}]" for case in (3, 13) for test in ("a", "b")}


def test_a_small_sweep_runs_one_of_its_places_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    run = set()
    for number in range(shares.SHARES):
        monkeypatch.setenv("SHARE", str(number))
        [place] = shares.share_of("abc")
        run.add(place)
    assert run == {*"abc"}
    assert shares.share_of("") == []


def test_the_commit_chooses_the_share(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shares, "_commits", lambda: 1_234)
    monkeypatch.setenv("SHARE", "")
    assert shares.chosen() == 4
    monkeypatch.setattr(shares, "_commits", lambda: 1_235)
    assert shares.chosen() == 4, "a run keeps the share that it has begun with"
    assert shares.closing_line().startswith("share 4 of 10 of each sweep: SHARE=4 repeats it")
    monkeypatch.undo()
    monkeypatch.setattr(shares, "ROOT", tmp_path)
    assert shares._commits() == 0, "without git"


def test_git_is_asked_once_which_files_have_changed(pytestconfig: pytest.Config) -> None:
    handed_on = getattr(pytestconfig, "workerinput", {}).get("changed")
    assert (shares.handed_on is None) == (handed_on is None)
    assert handed_on is None or {*map(str, shares.changed())} == {*handed_on}
    assert shares.changed() is shares.changed()


@pytest.mark.parametrize("word", ["10", "-1", "some", "1.0"])
def test_another_word_is_refused(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARE", word)
    with pytest.raises(ValueError, match="give a number from 0 to 9, or all"):
        shares.chosen()


def test_the_page_tells_of_each_module_with_a_sweep() -> None:
    uses = re.compile(r"^from tests\.shares import|^from tests import .*shares|^@pytest\.mark\.sweep", re.MULTILINE)
    using = {
        path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("*.py") if uses.search(path.read_text())
    }
    ours = {"tests/conftest.py", "tests/suites.py", "tests/test_shares.py"}
    rows = re.findall(r"`([\w/]+\.py)`", PAGE)
    assert [name for name in sorted(using - ours) if not any(name.endswith(row) for row in rows)] == []


def test_a_report_names_a_test_as_pytest_does() -> None:
    assert node_id("tests.server.test_server.TestLife", "test_a") == "tests/server/test_server.py::TestLife::test_a"
    assert node_id("tests.test_cli", "test_b") == "tests/test_cli.py::test_b"


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 7])
def test_long_tests_begin_first_in_each_process(workers: int) -> None:
    long = random.Random(1).sample(sorted(noted()), 21)
    tests = [f"tests/test_short.py::test_{number}" for number in range(100)] + [f"{name}[case]" for name in long]
    order = dealt(tests, workers, name=str)
    assert sorted(order) == sorted(tests)
    first, left = 0, len(order)
    lasts = []
    for number in range(workers):
        size = left // (workers - number)  # as worksteal divides them
        block = order[first : first + size]
        seconds = [noted().get(name.partition("[")[0], 0.0) for name in block]
        assert seconds == sorted(seconds, reverse=True)
        lasts.append(sum(seconds))
        first, left = first + size, left - size
    assert max(lasts) - min(lasts) <= max(noted()[name] for name in long)
