"""What all tests have: a place for reports that are shown at the end."""

import pytest

_REPORTS = pytest.StashKey[list[str]]()


@pytest.fixture
def reports(pytestconfig: pytest.Config) -> list[str]:
    """What is appended here is shown when all tests have run, whether they passed or not."""
    return pytestconfig.stash.setdefault(_REPORTS, [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Show the reports."""
    for report in config.stash.get(_REPORTS, []):
        terminalreporter.write_line("")
        for line in report.splitlines():
            terminalreporter.write_line(line)
