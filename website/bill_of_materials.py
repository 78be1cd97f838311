"""The bill of materials of the wheel (CycloneDX, JSON): what it asks for, and what that asks for.

`python -m website.bill_of_materials dist` writes it beside the wheel. The versions are those of this environment, in
which the tests have run: a user's installer may choose others that the wheel allows.
"""

import hashlib
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from zipfile import ZipFile

from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import DisjunctiveLicense
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.metadata import Metadata
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

BUILDERS = frozenset({"test", "test-java", "fuzz", "docs", "dist", "check"})
"""Extras that build and test Exacta. Nobody who uses it has them."""
EXTRA, ALLOWED = "exacta:extra", "exacta:version"
"""The properties of a component: the extras that bring it, and the versions that the wheel allows."""


class Bill:
    """The components, by the names of packages."""

    def __init__(self, wheel: Path) -> None:
        with ZipFile(wheel) as opened:
            (name,) = (each for each in opened.namelist() if each.endswith(".dist-info/METADATA"))
            self._metadata = Metadata.from_email(opened.read(name), validate=False)
        self._own = list(self._metadata.requires_dist or ())
        self.components: dict[str, Component] = {}
        self._asks: dict[str, set[str]] = {}
        self._followed: set[tuple[str, frozenset[str], str]] = set()
        self._root = Component(
            name=self._metadata.name,
            version=str(self._metadata.version),
            type=ComponentType.APPLICATION,
            bom_ref=self._metadata.name,
            purl=PackageURL("pypi", name=self._metadata.name, version=str(self._metadata.version)),
            licenses=[DisjunctiveLicense(id=str(self._metadata.license_expression))],
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=hashlib.sha256(wheel.read_bytes()).hexdigest())],
        )

    def made(self) -> Bom:
        """Return the bill."""
        own = self._metadata.name
        for extra in ("", *sorted(set(self._metadata.provides_extra or ()) - BUILDERS)):
            self._follow(own, self._own, frozenset({extra}), extra)
        bom = Bom(components=self.components.values())
        bom.metadata.component = self._root
        known = {own: self._root, **self.components}
        for asking, asked in self._asks.items():
            bom.register_dependency(known[asking], [known[each] for each in sorted(asked) if each in known])
        return bom

    def _follow(self, asking: str, requirements: list[Requirement], extras: frozenset[str], brought_by: str) -> None:
        for requirement in requirements:
            if not _is_asked_for(requirement, extras):
                continue
            name = canonicalize_name(requirement.name)
            if name == self._metadata.name:  # an extra that brings another one
                self._follow(
                    asking, list(self._metadata.requires_dist or ()), frozenset(requirement.extras), brought_by
                )
                continue
            self._asks.setdefault(asking, set()).add(name)
            self._add(name, requirement, brought_by, asking)

    def _add(self, name: str, requirement: Requirement, brought_by: str, asking: str) -> None:
        found = _installed(name)
        if name not in self.components:
            self.components[name] = _component(name, found)
        component = self.components[name]
        if brought_by:
            component.properties.add(Property(name=EXTRA, value=brought_by))
        if asking == self._metadata.name:
            component.properties.add(Property(name=ALLOWED, value=str(requirement.specifier)))
        followed = name, frozenset(requirement.extras) | {""}, brought_by
        if found is not None and followed not in self._followed:
            self._followed.add(followed)
            self._follow(name, [Requirement(each) for each in found.requires or ()], *followed[1:])


def _is_asked_for(requirement: Requirement, extras: frozenset[str]) -> bool:
    return requirement.marker is None or any(requirement.marker.evaluate({"extra": each}) for each in extras)


def _installed(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def _license(found: Distribution) -> str | None:
    told = found.metadata
    for field in ("License-Expression", "License"):
        if text := str((told.get_all(field) or [""])[0]).strip():
            return text.splitlines()[0]
    named = [each.rpartition(" :: ")[2] for each in told.get_all("Classifier") or () if each.startswith("License :: ")]
    return " AND ".join(named) or None


def _component(name: str, found: Distribution | None) -> Component:
    version = None if found is None else found.version
    license_told = None if found is None else _license(found)
    licenses = [] if license_told is None else [DisjunctiveLicense(name=license_told)]
    return Component(
        name=name,
        version=version,
        type=ComponentType.LIBRARY,
        bom_ref=name,
        purl=PackageURL("pypi", name=name, version=version),
        licenses=licenses,
    )


def written(folder: Path) -> Path:
    """Write the bill of the one wheel in a folder beside it; return its path."""
    (wheel,) = folder.glob("*.whl")
    path = wheel.with_name(f"{'-'.join(wheel.name.split('-')[:2])}.cdx.json")
    path.write_text(JsonV1Dot6(Bill(wheel).made()).output_as_string(indent=2))
    return path


if __name__ == "__main__":
    sys.stdout.write(f"bill of materials: {written(Path(sys.argv[1]))}\n")
