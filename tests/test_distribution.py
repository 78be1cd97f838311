"""The wheel as an index would show it: typed, described, and without a link that leads nowhere there."""

import re
import subprocess
import sys
import tomllib
from email.message import Message
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest
from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> ZipFile:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (path,) = folder.glob("*.whl")
    return ZipFile(path)


@pytest.fixture(scope="module")
def metadata(wheel: ZipFile) -> Message:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return Parser().parsestr(wheel.read(name).decode())


def links(markdown: str) -> list[str]:
    inline = [child for token in MarkdownIt().parse(markdown) for child in token.children or ()]
    found = [
        child.attrs.get("href") or child.attrs.get("src") for child in inline if child.type in ("link_open", "image")
    ]
    return [str(link) for link in found]


def test_type_checkers_are_told_that_it_is_typed(wheel: ZipFile) -> None:
    assert {"exacta/py.typed", "pyspark_exacta.py"} <= set(wheel.namelist())


def test_no_link_of_the_description_is_relative(metadata: Message) -> None:
    source = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Source"]
    printed, shown = links((ROOT / "README.md").read_text()), links(str(metadata.get_payload()))
    expected = [link if "://" in link else f"{source}/blob/main/{link}" for link in printed]
    assert len(expected) > 10
    assert shown == expected


def test_nothing_installs_the_other_project_that_is_called_exacta() -> None:
    """On the index `exacta` is somebody else's package (decision 0047)."""
    installs = re.compile(r"""\bpip["',]* ["']?install\b[^\n`&|]*["' ]exacta(?![\w/.-])|(?<![\w/.-])exacta\[\w""")
    assert installs.search('["pip", "install", "--quiet", "exacta"]')
    assert installs.search("it needs the extra `exacta[spark]`")
    found = set()
    for folder in (".", "docs", "examples", "packaging", "src", "tests"):
        for path in (ROOT / folder).glob("*" if folder == "." else "**/*"):
            if path.suffix in (".md", ".py", ".sh") and path != Path(__file__) and installs.search(path.read_text()):
                found.add(path.relative_to(ROOT).as_posix())
    assert found == {"docs/decisions/0047-the-package-is-called-exacta-log.md"}


def test_all_addresses_are_of_one_repository() -> None:
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    to_report = re.findall(r"<(https?://[^>]+)>", (ROOT / "SECURITY.md").read_text())
    assert len(to_report) == 1
    assert {url for url in (*urls.values(), *to_report) if not url.startswith(urls["Source"])} == set()


def test_what_is_supported_is_classified(metadata: Message) -> None:
    classifiers = metadata.get_all("Classifier", [])
    systems = {each for each in classifiers if each.startswith("Operating System")}
    assert systems == {"Operating System :: MacOS", "Operating System :: POSIX :: Linux"}
    assert "Typing :: Typed" in classifiers
    assert f"Programming Language :: Python :: {metadata['Requires-Python'].removeprefix('>=')}" in classifiers
    assert metadata["Keywords"]


def test_the_wheel_brings_the_files_for_running_a_server(wheel: ZipFile) -> None:
    """`exacta config unit` and its siblings print them."""
    below = "exacta/files/"
    brought = {name.removeprefix(below): wheel.read(name) for name in wheel.namelist() if name.startswith(below)}
    files = [*ROOT.glob("monitoring/*"), *ROOT.glob("packaging/systemd/*"), ROOT / "packaging/exacta.toml"]
    assert brought == {str(file.relative_to(ROOT)): file.read_bytes() for file in files}
