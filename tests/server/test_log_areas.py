"""The page names each area of the log once, and those that a server has."""

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs/how-to/monitoring.md"

PROGRAM = """
import tempfile
import exacta
import exacta.server.process
from exacta.kafka.loggers import names

with exacta.Broker(pulsar=True):
    print(*names())
"""
OF_THE_TEST_KIT = {"client", "testing"}


def test_the_areas_of_the_page_are_those_of_the_code() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    areas = {name.split(".")[1] for name in done.stdout.split() if "." in name} - OF_THE_TEST_KIT
    table = PAGE.read_text().partition("| area | what it tells |\n")[2].partition("\n\n")[0]
    told = [area for row in table.splitlines()[1:] for area in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert sorted(told) == sorted(areas)
