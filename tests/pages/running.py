"""Runs the examples of a page as they are printed: Python in one process, commands in a shell, output compared.

Owns the languages that examples may have:

- `python`: blocks in a row are one program; one that begins with `# name.py` is a file, for commands to use;
- `sh`: one script, which ends at the first command that fails;
- `console`: commands behind `$`, and what they print;
- `text`, or none: what the commands before print, or a part of it.
"""

import json
import os
import re
import signal
import subprocess
import sys
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from tests.pages.blocks import Block
from tests.pages.not_run import why_not_run
from tests.pages.runs import ADDRESSES, OLD_ADDRESS, PLACE, PULSAR_ADDRESS, Run
from tests.spark.installed import variables_without_this_machines
from tests.spark.quick_java import quick_environment

PYTHON, SHELL, CONSOLE, OUTPUT = "python", "sh", "console", ("text", "")
LANGUAGES = (PYTHON, SHELL, CONSOLE, *OUTPUT)
TIMEOUT_S = 240

# The lines of a traceback are the page's.
_PROGRAM = """
import json, sys
namespace = {"__name__": "__main__"}
for name, line, text in json.load(sys.stdin):
    exec(compile("\\n" * (line - 1) + text, name, "exec"), namespace)
"""
_FILE = re.compile(r"# (\w+\.py)\n")


class Addresses(NamedTuple):
    """The addresses of the brokers of a run."""

    servers: str
    pulsar: str
    old: str = ""
    """The address of the broker that a page moves away from."""


class Reader:
    """Goes through examples in a folder, and remembers what the last commands have printed, and all of them."""

    def __init__(self, run: Run, addresses: Addresses, folder: Path) -> None:
        self.printed = ""
        self.printed_meanwhile = ""
        self._run = run
        self._addresses = addresses
        self._folder = folder
        self._groups: list[int] = []

    def go_through(self, blocks: list[Block]) -> None:
        """Run the blocks in their order. Raises AssertionError, with the place in the page, where one fails."""
        for is_program, several in groupby(
            blocks, lambda block: block.language == PYTHON and not _FILE.match(block.text)
        ):
            if is_program:
                self._program(list(several))
            else:
                for block in several:
                    self._one(block)

    def end(self) -> None:
        """End what the commands have left running."""
        for group in self._groups:
            try:
                os.killpg(group, signal.SIGKILL)
            except ProcessLookupError:
                continue

    def _one(self, block: Block) -> None:
        if block.language == PYTHON:
            text = self._substituted(block.text)
            named = _FILE.match(text)
            assert named is not None
            (self._folder / named[1]).write_text(text)
        elif block.language == SHELL:
            self._shell(block, block.text.splitlines())
        elif block.language == CONSOLE:
            lines = block.text.splitlines()
            self._shell(block, [line.removeprefix("$ ") for line in lines if line.startswith("$ ")])
            self._compare(block, "\n".join(line for line in lines if not line.startswith("$ ")))
        else:
            self._compare(block, block.text)

    def _program(self, blocks: list[Block]) -> None:
        parts = [(block.page, block.line, block.text) for block in blocks]
        parts = [("the context", 1, self._run.context), *parts, ("what comes afterwards", 1, self._run.afterwards)]
        given = json.dumps([(name, line, self._substituted(text)) for name, line, text in parts])
        code, self.printed = self._call([sys.executable, "-c", _PROGRAM], given)
        assert code == 0, f"{blocks[0]}:\n{self.printed[-4000:]}"

    def _shell(self, block: Block, lines: list[str]) -> None:
        script = "\n".join(line for line in lines if why_not_run(block.page, line) is None)
        code, self.printed = self._call(
            ["bash", "-euo", "pipefail", "-c", self._substituted(script)], self._run.answers
        )
        assert code == self._run.exits.get(lines[0], 0), f"{block}: exit code {code}\n{self.printed[-4000:]}"

    def _call(self, command: list[str], typed: str) -> tuple[int, str]:
        environment = variables_without_this_machines() | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "TZ": "UTC",  # the sign of a zone is compared
            "EXACTA_BOOTSTRAP_SERVERS": self._addresses.servers,  # as if it listened on the default address
            **(quick_environment() if self._run.spark else {}),
            **self._run.environment,
        }
        log = self._folder / f"log-{len(self._groups)}"
        with log.open("wb") as output:
            process = subprocess.Popen(
                command,
                cwd=self._folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                text=True,
                start_new_session=True,
            )
            self._groups.append(process.pid)
            process.communicate(typed, timeout=TIMEOUT_S)
        printed = log.read_text()
        self.printed_meanwhile += printed
        return process.returncode, printed

    def _compare(self, block: Block, text: str) -> None:
        assert re.search(pattern(text), self.printed, re.MULTILINE), f"{block} is not what was printed:\n{self.printed}"

    def _substituted(self, text: str) -> str:
        for address in ADDRESSES:
            text = text.replace(address, self._addresses.servers)
        text = text.replace(PULSAR_ADDRESS, self._addresses.pulsar).replace(OLD_ADDRESS, self._addresses.old)
        return text.replace(PLACE, str(self._folder / "checkpoint"))


def pattern(printed: str) -> str:
    """Return an expression for lines like those printed in a page, with any numbers, and anything for `…`."""
    like = re.sub(r"\d+", r"\\d+", re.escape(printed.rstrip("\n"))).replace("…", "(?:.|\n)*")
    return f"^{like}$"
