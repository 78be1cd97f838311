"""The client's own tests, one by one, but for those that are left out for a reason."""

import re
import subprocess

import pytest

from tests.pulsar_go.conftest import Suite
from tests.pulsar_go.left_out import FILES, LEFT_OUT, TRIED_AGAIN

TEST_SECONDS = 240
"""Two of the tests of transactions wait for two minutes, and one of priorities for one."""

TRIES = 3

pytestmark = pytest.mark.timeout(3600)  # each file has dozens of tests, and the first one builds

_TEST = re.compile(r"^func (Test\w+)\(", re.M)


def names_in(suite: Suite, file: str) -> list[str]:
    return _TEST.findall((suite.folder / file).read_text())


def test_the_tests_that_are_left_out_are_there(suite: Suite) -> None:
    assert LEFT_OUT.keys() - {name for file in FILES for name in names_in(suite, file)} == set()
    assert all(LEFT_OUT.values())


@pytest.mark.parametrize("file", FILES)
def test_own_tests(suite: Suite, file: str) -> None:
    failed = {}
    for name in names_in(suite, file):
        if name in LEFT_OUT:
            continue
        for _ in range(TRIES if name in TRIED_AGAIN else 1):
            told = _failure(suite, name)
            if not told:
                break
        else:
            failed[name] = told
    assert failed == {}


def _failure(suite: Suite, name: str) -> str:
    """Run one test; return what it says if it fails."""
    command = [str(suite.program), "-test.run", f"^{name}$", "-test.v", "-test.timeout", f"{TEST_SECONDS}s"]
    done = subprocess.run(
        command, cwd=suite.folder, capture_output=True, text=True, check=False, timeout=TEST_SECONDS + 30
    )
    has_run = any(f"--- {told}: {name} " in done.stdout for told in ("PASS", "SKIP"))  # it skips one by itself
    return "" if done.returncode == 0 and has_run else done.stdout[-3000:]
