"""The bill of materials beside the wheel: it names what an empty environment gets, and what extras bring."""

import hashlib
import json
import subprocess
import tomllib
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.installed.conftest import ON_WHEEL
from tests.pages.blocks import ROOT

pytestmark = ON_WHEEL
PIPS_OWN = {"pip", "setuptools", "wheel", "exacta-log"}


def bill_of(wheel: Path) -> dict[str, Any]:
    (path,) = wheel.parent.glob("*.cdx.json")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_it_is_about_this_wheel(wheel: Path) -> None:
    bill = bill_of(wheel)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    about = bill["metadata"]["component"]
    assert wheel.name.startswith(f"{about['name'].replace('-', '_')}-{about['version']}-")
    assert about["purl"] == f"pkg:pypi/{about['name']}@{about['version']}"
    assert about["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256(wheel.read_bytes()).hexdigest()}]


def test_it_names_what_the_wheel_and_its_extras_ask_for(wheel: Path) -> None:
    from website.bill_of_materials import ALLOWED, BUILDERS, EXTRA  # its packages come with the extra `dist`

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    components = {each["name"]: each for each in bill_of(wheel)["components"]}
    asked = {"": project["dependencies"], **project["optional-dependencies"]}
    for extra in asked.keys() - BUILDERS:
        for text in asked[extra]:
            requirement = Requirement(text)
            name = canonicalize_name(requirement.name)
            if name == "exacta-log":
                continue
            component = components[name]
            properties = [(each["name"], each["value"]) for each in component.get("properties", ())]
            assert (ALLOWED, str(requirement.specifier)) in properties
            assert not extra or (EXTRA, extra) in properties
            assert component["version"] in requirement.specifier
            assert component["purl"] == f"pkg:pypi/{name}@{component['version']}"
            assert component["licenses"]
    assert not {"pytest", "ruff", "hatchling", "mkdocs"} & components.keys()


def test_an_empty_environment_gets_nothing_that_is_not_in_it(wheel: Path, variables: dict[str, str]) -> None:
    pip = ("python", "-m", "pip")
    subprocess.run([*pip, "install", "--quiet", f"{wheel}[pulsar,oauth,tls]"], env=variables, check=True, timeout=300)
    listed = subprocess.run([*pip, "list", "--format=json"], env=variables, check=True, capture_output=True, text=True)
    names = {canonicalize_name(each["name"]) for each in json.loads(listed.stdout)}
    assert names - PIPS_OWN - {each["name"] for each in bill_of(wheel)["components"]} == set()


def test_what_asks_for_what_is_whole(wheel: Path) -> None:
    bill = bill_of(wheel)
    known = {each["bom-ref"] for each in (bill["metadata"]["component"], *bill["components"])}
    edges = {each["ref"]: set(each.get("dependsOn", ())) for each in bill["dependencies"]}
    assert edges.keys() | set().union(*edges.values()) <= known
    reached, todo = set(), {bill["metadata"]["component"]["bom-ref"]}
    while todo:
        reached |= todo
        todo = set().union(*(edges.get(each, set()) for each in todo)) - reached
    assert reached == known
