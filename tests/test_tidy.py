"""The style that a test can hold: sizes of files and functions, one dialect, no dead module, tests beside their rooms.

`make check` holds layers, types and format; `tests/pages/test_references.py` holds what texts refer to.
"""

import ast
import io
import re
import tokenize
from functools import cache
from graphlib import TopologicalSorter
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.docstring_tables import tables_in

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "exacta"
MOST_LINES = 400
MOST_LINES_OF_A_FUNCTION = 60
LONG_FUNCTIONS = {
    "src/exacta/protocol/kafka/record_keys.py:record_keys": "its loop over records reads numbers in line, for speed",
    "src/exacta/protocol/kafka/record_reading.py:read_records": "the same",
}
"""Functions that may be longer, and the reason."""

_OPTIONS = "each option of the command is a parameter, and typer reads them from the signature"
LONG_FUNCTIONS |= {"tests/differential/test_migration.py:send": "one case for each step"}
LONG_FUNCTIONS |= {"src/exacta/cli/produce.py:produce": _OPTIONS, "src/exacta/cli/topics.py:trim": _OPTIONS}

_TO_BE_DIVIDED = "it is divided when rules and doors move (architecture: the log behind a list of doors)"
LONG_FILES = {
    "src/exacta/engine/engine.py": _TO_BE_DIVIDED,
    "src/exacta/front/connection.py": "frames, back-pressure and steps are one state machine",
    "tests/core/groups/test_migration.py": "the moves of a group are one thing",
    "tests/engine/test_dispatch.py": "the dispatcher is one thing",
    "tests/server/test_server.py": "a server's life is one thing",
}
"""Files that may be longer, and the reason."""

GENERATED = frozenset({"src/exacta/protocol/pulsar/messages_pb2.py"})
"""Files that a generator writes, as long as their definitions want them; a test beside them writes them again."""

CAMPAIGNS = {
    "cluster": "brokers over one PostgreSQL, under faults of every kind",
    "benchmarks": "the benchmarks' own code",
    "attacks": "the largest requests, and what they cost",
    "conformance": "other people's clients, on Exacta and on Apache Kafka",
    "conformance/clients": "the clients of the conformance scenarios",
    "differential": "random frames on Exacta and on Apache Kafka",
    "engine/corpus": "data directories that earlier versions have written",
    "examples": "the examples that users copy",
    "franz_go": "a client in Go",
    "fuzz": "bytes of an attacker",
    "installed": "the wheel alone in an empty environment",
    "login_suites": "other people's own tests of logins and rules",
    "login_suites/plugins": "what gives these tests a broker",
    "one_log": "Kafka's and Pulsar's clients on the same topics",
    "packed": "executors that get a packed environment",
    "pages": "README and docs",
    "power": "a machine without power",
    "pulsar/differential": "random programs on Exacta and on Apache Pulsar",
    "pulsar_clients": "Pulsar's own clients, on Exacta and on Apache Pulsar",
    "pulsar_go": "the own tests of Pulsar's client in Go",
    "rights": "what each client and each command needs where access rules are on",
    "simulation": "the simulation's own code",
    "spark_cluster": "a standalone Spark cluster",
    "spark_connector": "Spark's own Kafka connector",
    "streams": "Kafka Streams",
    "tools": "Kafka's own command line tools",
}
"""Folders of tests that mirror no room of the source: each holds Exacta against something outside of it."""

ENTRIES = frozenset(
    {"exacta.cli.__main__", "exacta.demo.pipeline", "exacta.pytest_plugin", "exacta.verify.workload.process"}
)
"""Modules that a process is started with, or that pytest loads, so that nothing imports them."""

HEADLESS = frozenset(
    [
        *("Of", "From", "What", "Where", "Who", "Whose", "Whom", "Whether", "Which", "Why", "How", "Whoever"),
        *("Whatever", "But", "Than", "Because", "Like", "With", "Without", "By", "To", "As", "That", "Those", "And"),
        *("In", "On", "For", "Instead", "Beside", "Longer", "Per"),
    ]
)
"""Words that begin a docstring which has no subject, and can only be understood with the line above it."""

_THINGS = "clients?|producers?|consumers?|brokers?|messages?|records?|batch(?:es)?|entr(?:y|ies)|topics?|transactions?"
_FUNCTION_WORDS = "are|is|has|have|had|in|that|which|and|or|with|gets?|sends?|then|becomes?"
_OF = "of (?:Apache )?(?:Kafka|Pulsar)"
ACCENT = [
    re.compile(r"\bwhoever\b", re.IGNORECASE),
    re.compile(r"\bNone: it is none\b"),
    re.compile(r"\bthat of\b"),
    re.compile(r"\bso many\b(?! (?:that|small)\b)", re.IGNORECASE),
    re.compile(r"\banew\b"),
    re.compile(rf"\b(?:{_THINGS}|subscriptions?|options?|keys?) {_OF}'s(?=[.,;:)?!]| (?:{_FUNCTION_WORDS})\b)"),
    re.compile(rf"\b(?:clients?|producers?|consumers?) {_OF}(?!['\w])"),
]
"""Turns of phrase that are not plain English. Name the subject and the thing; say `Kafka client`, `this many`."""

ACCENT_LEFT = {"tests": 60}
"""How many of them a folder still has. The number may only become smaller; a folder that is not here has none."""


def python_files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


EVERYWHERE = python_files("src", "simulation", "benchmarks", "examples", "tests", "website")
OURS = python_files("src", "simulation", "benchmarks")


COMMENTED = re.compile(r"#:|--$", re.MULTILINE)
"""This finds what may be a ruler or a comment that documents an attribute. Other files need not be taken apart."""


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


class Facts(NamedTuple):
    """Hold what the tests ask of a file. Its tree is forgotten: all trees together are a million objects."""

    functions: list[tuple[str, int]]
    """Each function and how many lines it has."""
    docstrings: list[tuple[int, str]]
    """The line and the text of each, of attributes too."""
    loggers: list[tuple[int, list[str]]]
    """The line of each of the module's own loggers, and the names that it is given."""
    imported: list[tuple[str, list[str]]]
    """Each module, and the names that are imported from it."""
    classes: list[str]
    """The names of the classes."""


@cache
def facts_of(path: Path) -> Facts:
    facts = Facts([], [], [], [], [])
    for node in ast.walk(ast.parse(path.read_text())):
        body = getattr(node, "body", None)
        for each in body if isinstance(body, list) else ():
            if (
                isinstance(each, ast.Expr)
                and isinstance(each.value, ast.Constant)
                and isinstance(each.value.value, str)
            ):
                facts.docstrings.append((each.lineno, each.value.value.strip()))
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                facts.functions.append((node.name, (node.end_lineno or 0) - node.lineno + 1))
            case ast.ClassDef():
                facts.classes.append(node.name)
            case ast.ImportFrom(module=str() as module):
                facts.imported.append((module, [each.name for each in node.names]))
            case ast.Import():
                facts.imported.extend((each.name, []) for each in node.names)
            case ast.Assign(value=ast.Call(func=called), col_offset=0):
                if ast.unparse(called).endswith("getLogger"):
                    facts.loggers.append((node.lineno, [ast.unparse(target) for target in node.targets]))
    return facts


def test_no_file_is_too_long() -> None:
    lengths = {name_of(path): len(path.read_text().splitlines()) for path in EVERYWHERE}
    assert {
        name: lines
        for name, lines in lengths.items()
        if lines > MOST_LINES and name not in GENERATED | LONG_FILES.keys()
    } == {}


def test_no_function_is_too_long() -> None:
    lengths = {f"{name_of(path)}:{name}": lines for path in EVERYWHERE for name, lines in facts_of(path).functions}
    long = {name for name, lines in lengths.items() if lines > MOST_LINES_OF_A_FUNCTION}
    assert long == LONG_FUNCTIONS.keys()


def test_loggers_have_one_name() -> None:
    others = [
        f"{name_of(path)}:{line}"
        for path in EVERYWHERE
        for line, names in facts_of(path).loggers
        if names != ["logger"]
    ]
    assert others == []


def test_attributes_are_documented_by_strings_and_rulers_are_alike() -> None:
    wrong = []
    for path in EVERYWHERE:
        if not COMMENTED.search(path.read_text()):
            continue
        for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
            text = token.string
            is_ruler = token.type == tokenize.COMMENT and text.endswith("--")
            if token.type == tokenize.COMMENT and (text.startswith("#:") or (is_ruler and text[:6] != "# --- ")):
                wrong.append(f"{name_of(path)}:{token.start[0]}: {text}")
    assert wrong == []


@pytest.mark.parametrize("room", ["src", "simulation", "benchmarks", "examples", "website"])
def test_docstrings_have_a_subject_or_a_verb(room: str) -> None:
    headless = [
        f"{name_of(path)}:{line}: {text.splitlines()[0]}"
        for path in python_files(room)
        for line, text in facts_of(path).docstrings
        if text and text.split()[0].rstrip(",:;") in HEADLESS
    ]
    assert headless == []


def test_the_texts_have_no_accent() -> None:
    found: dict[str, list[str]] = {}
    for path in [*EVERYWHERE, *ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        text = re.sub(r"\s+(?:# )?", " ", path.read_text())
        if path != Path(__file__) and not path.match("docs/decisions/0*"):  # these are kept as they were decided
            told = [f"{name_of(path)}: {hit[0]}" for turn in ACCENT for hit in turn.finditer(text)]
            found.setdefault(name_of(path).split("/")[0], []).extend(told)
    assert {room: hits for room, hits in found.items() if len(hits) > ACCENT_LEFT.get(room, 0)} == {}


TABLE_READ = re.compile(r'docstring_table\(\s*(MODULE|"[\w.]+"),\s*("(?:[^"\\]|\\.)+")')
"""A call that reads a table; its module may be the test module's constant `MODULE`."""


def test_every_table_of_a_docstring_is_read_by_a_test() -> None:
    """A table of a docstring is a rule. The test that takes its cells from it holds it to the code (decision 0064)."""
    stand = {
        (module_of(path), table.corner)
        for path in python_files("src", "simulation", "website")
        for _, text in facts_of(path).docstrings
        for table in tables_in(text)
    }
    read = set()
    for path in python_files("tests"):
        text = path.read_text()
        for module, corner in TABLE_READ.findall(text):
            names = re.findall(r'^MODULE = ("[\w.]+")', text, re.MULTILINE) if module == "MODULE" else [module]
            read |= {(ast.literal_eval(name), ast.literal_eval(corner)) for name in names}
    assert stand - read == set(), "no test reads these"
    assert read - stand == set()
    assert stand


def module_of(path: Path) -> str:
    root = ROOT / "src" if path.is_relative_to(ROOT / "src") else ROOT
    return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def test_no_import_leads_back() -> None:
    """Imports in functions and for types count, too."""
    modules = {module_of(path): path for path in python_files("src/exacta")}
    graph: dict[str, set[str]] = {}
    for module, path in modules.items():
        named = graph.setdefault(module, set())
        for imported, names in facts_of(path).imported:
            inner = [f"{imported}.{each}" for each in names]
            named |= {each if each in modules else imported for each in inner or [imported]}
    TopologicalSorter(graph).prepare()  # raises CycleError, with the circle


def homonyms() -> dict[str, list[str]]:
    """Return the names that several classes have, and the modules of these; messages are named by the protocol."""
    found: dict[str, list[str]] = {}
    for path in python_files("src/exacta"):
        if "protocol/kafka/messages" not in name_of(path) and name_of(path) not in GENERATED:
            for name in facts_of(path).classes:
                found.setdefault(name, []).append(module_of(path))
    return {name: modules for name, modules in found.items() if len(modules) > 1}


def test_the_number_of_homonyms_only_falls() -> None:
    assert len(homonyms()) <= MOST_HOMONYMS


def test_no_homonyms_meet() -> None:
    """Two classes of one name meet where a module that knows the one imports a module that knows the other."""
    imports = {module_of(path): facts_of(path).imported for path in python_files("src/exacta")}
    named = {module: {f"{each}.{name}" for each, names in found for name in names} for module, found in imports.items()}
    reached = {module: {each for each, _ in found} | named[module] for module, found in imports.items()}

    def knows(module: str, home: str, name: str) -> bool:
        packages = [home.rsplit(".", each)[0] for each in range(home.count(".") + 1)]
        return module == home or any(f"{package}.{name}" in named[module] for package in packages)

    met = set()
    for name, homes in homonyms().items():
        users = [[module for module in imports if knows(module, home, name)] for home in homes]
        for one, other in combinations(users, 2):
            if any(b in reached[a] or a in reached[b] for a in one for b in other):
                met.add(name)
    assert met == MEET.keys()


MOST_HOMONYMS = 62
"""The number of names that two classes or more have, none of which meet. It may only become smaller."""

MEET = {"Broker": "`exacta.Broker` is a public name, and inside of it the broker is one"}
"""The homonyms that meet, and the reason."""


def imported_modules() -> set[str]:
    """Return all modules that are imported, by name or from their package, anywhere but in tests."""
    found = set()
    for path in python_files("src", "simulation", "benchmarks", "website"):
        for module, names in facts_of(path).imported:
            found |= {module, *(f"{module}.{each}" for each in names)}
    return found


def test_every_module_is_imported() -> None:
    """A module that only tests import is dead, or a fake in a production room."""
    known, texts = imported_modules(), [path.read_text() for path in python_files("src")]
    makefile = (ROOT / "Makefile").read_text()
    for path in python_files("src/exacta"):
        module = module_of(path)
        if module in known or module in ENTRIES or f"-m {module} " in makefile or path.name == "__init__.py":
            continue
        is_loaded_by_name = any(f'"{module}' in text for text in texts)
        is_one_of_a_list = path.name[0] in "kp" and path.name[1].isdigit()  # by its API's key, or its command's number
        assert is_loaded_by_name or is_one_of_a_list, f"nothing imports {module}"


def test_tests_mirror_the_source() -> None:
    """Each folder of tests is a room of the source by the same name, or a campaign; each room with rules has tests."""
    rooms = {path.parent.relative_to(SOURCE).as_posix() for path in python_files("src/exacta")}
    folders = {path.parent.relative_to(ROOT / "tests").as_posix() for path in python_files("tests")}
    assert folders - rooms - CAMPAIGNS.keys() == set()
    top = {room for room in rooms if "/" not in room} - {"."}
    tested = {folder.split("/")[0] for folder in folders}
    assert top - tested == UNMIRRORED.keys()


UNMIRRORED = {
    "ports": "contracts, which tests/adapters holds every adapter to",
}
"""Rooms without a folder of tests, and the reason."""
