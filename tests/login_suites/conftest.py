"""Only in the suite `logins`: finds the sources of the clients."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

SOURCES = os.environ.get("EXACTA_TEST_LOGIN_SUITES", "")

# Elsewhere nothing here is even imported.
collect_ignore_glob = [] if SOURCES else ["test_*.py"]
collect_ignore = ["plugins"]


@pytest.fixture(scope="session")
def source() -> Callable[[str], Path]:
    """A function that returns the folder with the source of a client, or skips the test."""

    def find(client: str) -> Path:
        folder = Path(SOURCES).resolve() / client
        if not folder.is_dir():
            pytest.skip(f"there is no {folder}")
        return folder

    return find
