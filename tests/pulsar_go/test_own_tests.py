"""The client's own tests, one by one, but for those that are left out for a reason."""

import re
import subprocess

import pytest

from tests.pulsar_go.conftest import Suite
from tests.pulsar_go.left_out import FILES, LEFT_OUT

TEST_SECONDS = 240
"""Two of the tests of transactions wait for two minutes, and one of priorities for one."""

pytestmark = pytest.mark.timeout(3600)  # each file has dozens of tests, and the first one builds

_TEST = re.compile(r"^func (Test\w+)\(", re.M)


def tests_in(suite: Suite) -> list[str]:
    return [name for file in FILES for name in _TEST.findall((suite.folder / file).read_text())]


def test_the_tests_that_are_left_out_are_there(suite: Suite) -> None:
    assert LEFT_OUT.keys() - set(tests_in(suite)) == set()
    assert all(LEFT_OUT.values())


@pytest.mark.parametrize("file", FILES)
def test_own_tests(suite: Suite, file: str) -> None:
    failed = {}
    for name in _TEST.findall((suite.folder / file).read_text()):
        if name in LEFT_OUT:
            continue
        command = [suite.program, "-test.run", f"^{name}$", "-test.v", "-test.timeout", f"{TEST_SECONDS}s"]
        done = subprocess.run(
            command, cwd=suite.folder, capture_output=True, text=True, check=False, timeout=TEST_SECONDS + 30
        )
        if done.returncode != 0 or f"--- PASS: {name} " not in done.stdout:
            failed[name] = done.stdout[-3000:]
    assert failed == {}
