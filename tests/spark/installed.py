"""An environment as `pip install exacta-log[spark]` makes it, out of what is installed here, without a registry.

Owns a virtual environment whose packages are links: those that the extra asks for, and what they ask for, and nothing
else. The project itself is on its path as the source tree.
"""

import os
import re
import tomllib
import venv
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]


def environment(folder: Path, extra: str) -> Path:
    """Make the environment of `exacta-log[extra]` in a folder; return its Python."""
    venv.create(folder, with_pip=False)
    (packages,) = folder.glob("lib/python*/site-packages")
    for name in sorted(required(extra)):
        for path in top_level(distribution(name)):
            (packages / path.name).symlink_to(path)
    for path in (ROOT / "src").iterdir():
        if not (packages / path.name).exists():
            (packages / path.name).symlink_to(path)
    return folder / "bin" / "python"


def variables_without_this_machines() -> dict[str, str]:
    """Return the environment's variables, without what they say here of Java, Spark and Python."""
    left_out = ("JAVA_HOME", "SPARK_HOME", "PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
    return {name: value for name, value in os.environ.items() if name not in left_out}


def required(extra: str) -> set[str]:
    """Return the names of all distributions that this project, with an extra, asks for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {name: list(map(Requirement, texts)) for name, texts in project["optional-dependencies"].items()}
    extras[""] = list(map(Requirement, project["dependencies"]))
    found: set[str] = set()
    open_ones = [*extras[""], *extras[extra]]
    seen = set()
    while open_ones:
        requirement = open_ones.pop()
        name, wanted = canonical(requirement.name), frozenset(requirement.extras)
        if (name, wanted) in seen:
            continue
        seen.add((name, wanted))
        if name == canonical(project["name"]):
            open_ones += [each for one in wanted for each in extras[one]]
            continue
        found.add(name)
        for further in map(Requirement, distribution(name).requires or ()):
            if further.marker is None or any(further.marker.evaluate({"extra": one}) for one in wanted or {""}):
                open_ones.append(further)
    return found


def top_level(of: Distribution) -> set[Path]:
    """Return the folders and files of a distribution that lie in site-packages."""
    names = {file.parts[0] for file in of.files or () if file.parts[0] not in ("..", "__pycache__")}
    return {Path(str(of.locate_file(name))) for name in names}


def canonical(name: str) -> str:
    """Return a project's name in the form in which two are compared (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()
