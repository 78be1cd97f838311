"""Run tests of a client by its own pytest, in its folder, and tell which of them did not pass."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

PLUGINS = Path(__file__).with_name("plugins")
SECONDS = 1200


def outcomes(
    source: Path, tests: Sequence[str], folder: Path, plugin: str, environment: Mapping[str, str]
) -> dict[str, str]:
    """Run tests with a plugin of ours; return what became of each: "", or the first lines of its failure or skip."""
    report = folder / "report.xml"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        plugin,
        "-o",
        "addopts=",
        "-o",
        "filterwarnings=",
        "-p",
        "no:xdist",
    ]
    command += ["-p", "no:cacheprovider", f"--junit-xml={report}", *tests]
    path = os.pathsep.join([str(PLUGINS), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        command,
        cwd=source,
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert report.exists(), done.stdout + done.stderr
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        told = [
            each.get("message") or each.text or each.tag for each in case if each.tag in ("failure", "error", "skipped")
        ]
        found[case.get("name") or ""] = "\n".join(told)[:2000]
    assert found, done.stdout + done.stderr
    return found


def assert_passed(found: Mapping[str, str], left_out: Mapping[str, str]) -> None:
    """Raise AssertionError with each test that did not pass, and is not left out for a reason."""
    failed = [f"{name}: {told}" for name, told in found.items() if told and name not in left_out]
    assert not failed, "\n".join(failed)
    assert left_out.keys() <= found.keys(), "a test that is left out is not there"
