"""The wheel, and an empty environment to install it in. `make test-dist` builds the wheel."""

import os
import venv
from pathlib import Path

import pytest

from tests.pages.blocks import ROOT
from tests.spark.installed import variables_without_this_machines

DIST = os.environ.get("EXACTA_TEST_DIST")
ON_WHEEL = pytest.mark.skipif(DIST is None, reason="make test-dist builds the wheel")


@pytest.fixture(scope="module")
def wheel() -> Path:
    assert DIST is not None
    (path,) = (ROOT / DIST).glob("*.whl")
    return path


@pytest.fixture
def variables(wheel: Path, tmp_path: Path) -> dict[str, str]:
    """Return the variables of an empty environment, in which `exacta` is the wheel, whatever an index has."""
    venv.create(tmp_path / "environment", with_pip=True)
    constraint = tmp_path / "constraint"
    constraint.write_text(f"exacta @ {wheel.resolve().as_uri()}\n")
    path = f"{tmp_path / 'environment' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return variables_without_this_machines() | {"PATH": path, "PIP_CONSTRAINT": str(constraint)}
