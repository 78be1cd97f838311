"""Jars by Maven: what a `pom.xml` names, with all that it needs, once, into a folder of the project's cache.

The copy is made beside that folder and renamed when whole, so that an interrupted fetch is never mistaken for a
finished one.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

COPY_DEPENDENCIES = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
FETCH_TIMEOUT_S = 900


class JarsUnavailableError(Exception):
    """Say in one line why jars cannot be had here."""


def fetch_jars(what: str, pom: Path, folder: Path, properties: Mapping[str, str]) -> Path:
    """Return `folder` with the jars, fetching them first if they are not there; `properties` fill in the pom.

    Raises JarsUnavailableError, in one line that names `what`, when Maven is missing or fails.
    """
    if folder.is_dir():
        return folder
    maven = shutil.which("mvn")
    if maven is None:
        raise JarsUnavailableError(f"fetching {what} needs Maven (mvn) in PATH: none found")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="jars-", dir=folder.parent) as work:
        target = Path(work) / "jars"
        command = [maven, "--batch-mode", "--quiet", "--file", str(pom), COPY_DEPENDENCIES]
        command += [f"-DoutputDirectory={target}", "-DincludeScope=runtime"]
        command += [f"-D{name}={value}" for name, value in properties.items()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False)
        if done.returncode != 0:
            errors = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR" in line]
            raise JarsUnavailableError(f"Maven could not fetch {what}: {(errors or ['no reason given'])[0]}")
        try:
            target.rename(folder)
        except OSError:
            # Somebody else finished the same fetch first; theirs is as good as ours.
            if not folder.is_dir():
                raise
    return folder
