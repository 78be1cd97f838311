"""The style that a test can hold: sizes of files and functions, one dialect, no dead module, tests beside their rooms.

`make check` holds layers, types and format; `tests/pages/test_references.py` holds what texts refer to.
"""

import ast
import io
import tokenize
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "exacta"
MOST_LINES = 400
MOST_LINES_OF_A_FUNCTION = 60
LONG_FUNCTIONS = {
    "src/exacta/protocol/kafka/record_keys.py:record_keys": "its loop over records reads numbers in line, for speed",
    "src/exacta/protocol/kafka/record_reading.py:read_records": "the same",
}
"""Functions that may be longer, and the reason."""

GENERATED = frozenset({"src/exacta/protocol/pulsar/messages_pb2.py"})
"""Files that a generator writes, as long as their definitions want them; a test beside them writes them anew."""

CAMPAIGNS = {
    "benchmarks": "the benchmarks' own code",
    "conformance": "other people's clients, on Exacta and on Apache Kafka",
    "conformance/clients": "the clients of the conformance scenarios",
    "differential": "random frames on Exacta and on Apache Kafka",
    "engine/corpus": "data directories that earlier versions have written",
    "examples": "the examples that users copy",
    "franz_go": "a client in Go",
    "one_log": "Kafka's and Pulsar's clients on the same topics",
    "packed": "executors that get a packed environment",
    "pages": "README and docs",
    "power": "a machine without power",
    "pulsar_clients": "Pulsar's own clients, on Exacta and on Apache Pulsar",
    "pulsar_go": "the own tests of Pulsar's client in Go",
    "pulsar/differential": "random programs on Exacta and on Apache Pulsar",
    "simulation": "the simulation's own code",
    "spark_cluster": "a standalone Spark cluster",
    "spark_connector": "Spark's own Kafka connector",
    "streams": "Kafka Streams",
    "tools": "Kafka's own command line tools",
}
"""Folders of tests that mirror no room of the source: each holds Exacta against something outside of it."""

ENTRIES = frozenset({"exacta.cli.__main__", "exacta.demo.pipeline", "exacta.verify.workload.process"})
"""Modules that a process is started with, so that nothing imports them."""

HEADLESS = frozenset(
    [
        *("Of", "From", "What", "Where", "Who", "Whose", "Whom", "Whether", "Which", "Why", "How", "Whoever"),
        *("Whatever", "But", "Than", "Because", "Like", "With", "Without", "By", "To", "As", "That", "Those", "And"),
        *("In", "On", "For", "Instead", "Beside", "Longer", "Per"),
    ]
)
"""Words that begin a docstring which has no subject, and can only be understood with the line above it."""


def python_files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


EVERYWHERE = python_files("src", "simulation", "benchmarks", "examples", "tests")
OURS = python_files("src", "simulation", "benchmarks")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield every docstring, of attributes too, with its line."""
    for node in ast.walk(tree_of(path)):
        body = getattr(node, "body", None)
        for each in body if isinstance(body, list) else ():
            if (
                isinstance(each, ast.Expr)
                and isinstance(each.value, ast.Constant)
                and isinstance(each.value.value, str)
            ):
                yield each.lineno, each.value.value.strip()


def test_no_file_is_too_long() -> None:
    lengths = {name_of(path): len(path.read_text().splitlines()) for path in EVERYWHERE}
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES and name not in GENERATED} == {}


def test_no_function_is_too_long() -> None:
    lengths = {
        f"{name_of(path)}:{node.name}": (node.end_lineno or 0) - node.lineno + 1
        for path in EVERYWHERE
        for node in functions(path)
    }
    long = {name for name, lines in lengths.items() if lines > MOST_LINES_OF_A_FUNCTION}
    assert long == LONG_FUNCTIONS.keys()


def test_loggers_have_one_name() -> None:
    others = [
        f"{name_of(path)}:{node.lineno}"
        for path in EVERYWHERE
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func).endswith("getLogger")
        and [ast.unparse(target) for target in node.targets] != ["logger"]
        and node.col_offset == 0
    ]
    assert others == []


def test_attributes_are_documented_by_strings_and_rulers_are_alike() -> None:
    wrong = []
    for path in EVERYWHERE:
        for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
            text = token.string
            is_ruler = token.type == tokenize.COMMENT and text.endswith("--")
            if token.type == tokenize.COMMENT and (text.startswith("#:") or (is_ruler and text[:6] != "# --- ")):
                wrong.append(f"{name_of(path)}:{token.start[0]}: {text}")
    assert wrong == []


@pytest.mark.parametrize("room", ["src", "simulation", "benchmarks", "examples"])
def test_docstrings_have_a_subject_or_a_verb(room: str) -> None:
    headless = [
        f"{name_of(path)}:{line}: {text.splitlines()[0]}"
        for path in python_files(room)
        for line, text in docstrings(path)
        if text and text.split()[0].rstrip(",:;") in HEADLESS
    ]
    assert headless == []


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")


def test_no_import_leads_back() -> None:
    """Imports in functions and for types count, too."""
    modules = {module_of(path): path for path in python_files("src/exacta")}
    graph: dict[str, set[str]] = {}
    for module, path in modules.items():
        named = graph.setdefault(module, set())
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ImportFrom) and node.module:
                for each in node.names:
                    inner = f"{node.module}.{each.name}"
                    named.add(inner if inner in modules else node.module)
            elif isinstance(node, ast.Import):
                named |= {each.name for each in node.names}
    TopologicalSorter(graph).prepare()  # raises CycleError, with the circle


def imported_modules() -> set[str]:
    """Return all modules that are imported, by name or from their package, anywhere but in tests."""
    found = set()
    for path in python_files("src", "simulation", "benchmarks"):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ImportFrom) and node.module:
                found |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
            elif isinstance(node, ast.Import):
                found |= {each.name for each in node.names}
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
    "cli": "the command line is tested by its processes, in tests/test_cli.py and beside what it commands",
    "ports": "contracts, which tests/adapters holds every adapter to",
}
"""Rooms without a folder of tests, and the reason."""
