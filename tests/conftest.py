"""What all tests have: a place for reports that are shown at the end."""

import gc
import logging
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

# The same examples each time; and one that takes long, as on a shared machine, is none that fails.
settings.register_profile("exacta", deadline=None, derandomize=True)
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
    """Show the reports."""
    for report in config.stash.get(_REPORTS, []):
        terminalreporter.write_line("")
        for line in report.splitlines():
            terminalreporter.write_line(line)
