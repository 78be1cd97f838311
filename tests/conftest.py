"""What all tests have: their share of each sweep, their order, and a place for reports that are shown at the end."""

import gc
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from exacta.security import backoff
from tests import crashes, order, shares
from tests.shares import changed, chosen, closing_line, examples

# A share has the same examples each time: its seed is set below, also where CI is set. A slow example does not fail.
settings.register_profile("exacta", derandomize=False, deadline=None, database=None, max_examples=examples(100))
settings.load_profile("exacta")

_REPORTS = pytest.StashKey[list[str]]()


@pytest.fixture
def reports(pytestconfig: pytest.Config) -> list[str]:
    """What is appended here is shown when all tests have run, whether they passed or not."""
    return pytestconfig.stash.setdefault(_REPORTS, [])


@pytest.fixture(autouse=True)
def _log_as_before() -> Iterator[None]:
    """Forget how a test has let the broker log: `exacta serve` decides that for its whole process."""
    root = logging.getLogger()
    level = root.level
    yield
    root.setLevel(level)
    for handler in [each for each in root.handlers if type(each) is logging.StreamHandler]:
        root.removeHandler(handler)


@pytest.fixture
def unpaced_logins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an address be wrong as often as it likes, and no refusal wait; `tests/security/test_backoff.py` has both."""
    monkeypatch.setattr(backoff, "MOST_OPEN", 1_000_000)
    monkeypatch.setattr(backoff, "LONGEST_S", 0.0)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Draw Hypothesis's examples by the number of the share: ten commits in a row draw ten times as many."""
    if config.getoption("--hypothesis-seed") is None:
        config.option.hypothesis_seed = str(chosen() or 0)
    found = getattr(config, "workerinput", {}).get("changed")
    if found is not None:
        shares.handed_on = frozenset(map(Path, found))
        config.pluginmanager.register(crashes.InWorker(config.workerinput["crash"]))  # type: ignore[attr-defined]
    else:
        config.pluginmanager.register(crashes.InController(config.stash.setdefault(_REPORTS, [])))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Hand on to a process of pytest-xdist which files have changed: all of them must collect the same tests."""
    node.workerinput["changed"] = sorted(map(str, changed()))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose the share of each sweep, and let the longest tests begin first, so that no process finishes alone."""
    swept = {item for item in items if item.get_closest_marker("sweep")}
    ours = shares.share_of_cases((item for item in items if item in swept), name=lambda item: item.nodeid)
    config.hook.pytest_deselected(items=[item for item in items if item in swept - ours])
    items[:] = [item for item in items if item not in swept - ours]
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if workers > 1:
        items[:] = order.dealt(items, workers, name=lambda item: item.nodeid)


def pytest_collection_finish() -> None:
    """Take what is there before the first test, all tests and modules, out of the garbage collector's sight.

    Looking through twelve thousand tests takes a fifth of a second each time, and each scenario with a client does so.
    """
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Close the clients that source and sink keep: of their sockets Python would complain, behind the last line."""
    connect = sys.modules.get("exacta.spark.clients")
    for client in connect._clients.values() if connect is not None else ():
        client.close()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Show the reports, and which share of the sweeps ran."""
    for report in config.stash.get(_REPORTS, []):
        terminalreporter.write_line("")
        for line in report.splitlines():
            terminalreporter.write_line(line)
    terminalreporter.write_line("")
    terminalreporter.write_line(closing_line())
