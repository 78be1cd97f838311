"""The command that a hint gives for what is missing works without an index, too."""

import os
import shlex
import subprocess
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import NoReturn

import pytest

from exacta import extras


def test_an_extra_is_added_to_the_exacta_that_is_there_without_an_index() -> None:
    """Every package of the extra is here, so pip has nothing to fetch, but would ask an index for Exacta itself."""
    pip = subprocess.run(
        [*shlex.split(extras.install_extra("web")), "--no-index", "--dry-run"],
        capture_output=True,
        text=True,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        check=False,
    )
    assert pip.returncode == 0, pip.stderr


def test_a_source_tree_that_is_only_on_the_path_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> NoReturn:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(extras, "distribution", nothing)
    root = Path(extras.__file__).parents[2]
    assert (root / "pyproject.toml").is_file()
    assert shlex.split(extras.install_extra("web"))[-1] == f"{root}[web]"
