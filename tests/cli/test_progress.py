"""Progress of commands that take long: on a terminal, and nowhere else."""

import io
import os
import pty
import subprocess
import sys

import pytest

from exacta.cli.progress import counting, measuring, working


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def on_a_terminal(monkeypatch):
    """Make stderr a terminal, once the test runs, and return what it gets."""
    monkeypatch.setenv("TERM", "xterm")

    def begin():
        monkeypatch.setattr(sys, "stderr", Terminal())
        return sys.stderr

    return begin


def test_a_part_is_shown(on_a_terminal):
    terminal = on_a_terminal()
    with measuring("reading", 2_000) as tell:
        for done in range(0, 1_001, 10):
            tell(done)
    assert "reading" in terminal.getvalue()
    assert "50%" in terminal.getvalue()


def test_a_number_is_shown_in_steps(on_a_terminal):
    terminal = on_a_terminal()
    with counting("records") as tell:
        for done in range(1, 12_346):
            tell(done)
    assert "12,301" in terminal.getvalue()


def test_the_work_is_named(on_a_terminal):
    terminal = on_a_terminal()
    with working("analysing"):
        pass
    assert "analysing" in terminal.getvalue()


def test_nothing_is_shown_in_a_file(monkeypatch):
    file = io.StringIO()
    monkeypatch.setattr(sys, "stderr", file)
    with measuring("reading", 10) as tell, counting("records") as count, working("waiting"):
        tell(5)
        count(5)
    assert file.getvalue() == ""


def test_what_a_command_prints_goes_to_its_file_while_a_bar_is_on_the_terminal(tmp_path):
    program = (
        "from exacta.cli.lines import say\n"
        "from exacta.cli.progress import working\n"
        "with working('analysing'):\n"
        "    say('a line')\n"
    )
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=os.environ | {"TERM": "xterm"},
        check=True,
    )
    os.close(theirs)
    assert done.stdout == b"a line\n"
    assert b"analysing" in os.read(ours, 65_536)
    os.close(ours)
