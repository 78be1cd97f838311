"""The examples that are small projects: their own tests run as their readers run them, with the test kit's fixtures."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(180)
@pytest.mark.parametrize("project", ["invoices", "alerts", "clicks"])
def test_its_own_tests_pass(project: str) -> None:
    # The fixtures come by an entry point, which an installation from before they were there does not have.
    command = [sys.executable, "-m", "pytest", "-q", "-p", "exacta.pytest_plugin", "-p", "no:cacheprovider"]
    done = subprocess.run([*command, f"examples/{project}"], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
    assert "2 passed" in done.stdout
