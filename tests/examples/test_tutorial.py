"""The tutorial's programs and commands, as its page has them, in its order."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import exacta

PAGE = Path(__file__).parents[2] / "docs" / "tutorial" / "at-least-once-to-exactly-once.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND_TIMEOUT_S = 150


@pytest.mark.spark
@pytest.mark.timeout(500)
def test_every_command_in_turn(tmp_path: Path) -> None:
    counted = []
    with exacta.Broker() as broker:
        for kind, text in BLOCK.findall(PAGE.read_text()):
            if kind == "python":
                name = text.partition("\n")[0].removeprefix("# ")
                (tmp_path / name).write_text(text.replace("127.0.0.1:9092", broker.bootstrap_servers))
            elif kind == "sh" and text.startswith("python ") and "venv" not in text:
                for line in text.splitlines():
                    counted += run(line, tmp_path)
    (at_least_once, exactly_once) = counted
    assert at_least_once[0] == 0
    assert at_least_once[1] > 0
    assert exactly_once == (0, 0)


def run(line: str, folder: Path) -> list[tuple[int, int]]:
    """Run a command; return what it has counted, if it counts: lost, more than once."""
    command = [sys.executable, *line.split()[1:]]
    log = folder / "log"
    with log.open("wb") as output:
        done = subprocess.run(command, cwd=folder, stdout=output, stderr=output, timeout=COMMAND_TIMEOUT_S, check=False)
    text = log.read_text()
    assert done.returncode == 0, f"{line}:\n{text[-4000:]}"
    found = re.search(r"orders lost: (\d+), written more than once: (\d+)", text)
    return [(int(found[1]), int(found[2]))] if found else []
