"""The command that installs what is missing: the line that a hint gives.

Theory of operation: pip and uv take the Exacta that is installed for `exacta-log`, wherever it came from, and add what
the extra asks for. So one line works with an index and without one, if pip belongs to this environment. A source
tree that is only on the path is named itself.
"""

import shlex
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

_PROJECT = "exacta-log"


def install_extra(extra: str) -> str:
    """Return the command that adds an extra to this environment."""
    return install(f"{_project()}[{extra}]")


def install(requirement: str) -> str:
    """Return the command that adds a package to this environment."""
    return f"{shlex.quote(sys.executable or 'python')} -m pip install {shlex.quote(requirement)}"


def _project() -> str:
    try:
        distribution(_PROJECT)
    except PackageNotFoundError:
        return str(Path(__file__).parents[2])
    return _PROJECT
