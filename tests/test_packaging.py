"""The files of `packaging/`: a unit that systemd accepts, and command lines that `exacta serve` knows."""

import json
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from exacta.cli.serve import run
from exacta.config.configuration import Configuration
from exacta.front.doors import Door, Endpoint
from exacta.server.configuration_file import read_configuration_file
from exacta.server.door_options import doors_of

ROOT = Path(__file__).parents[1]
PACKAGING = ROOT / "packaging"
UNIT = PACKAGING / "systemd" / "exacta.service"
HIGHEST_EXPOSURE = 20
"""The exposure that systemd may see in the unit, in tenths: 20 is "OK", and 100 a service without any hardening."""

PROGRAM = "/opt/exacta/bin/exacta"


def settings() -> dict[str, list[str]]:
    """Return the settings of the unit: each may stand there more than once."""
    found: dict[str, list[str]] = {}
    for line in UNIT.read_text().splitlines():
        if match := re.fullmatch(r"(\w+)=(.*)", line):
            found.setdefault(match[1], []).append(match[2])
    return found


def called(monkeypatch: pytest.MonkeyPatch, command: list[str]) -> tuple[Configuration, Path, list[Door]]:
    """Return what `exacta serve` is called with by the command."""
    assert command[:2] == [PROGRAM, "serve"]
    calls: list[Any] = []

    def serve(*call: object, **_: object) -> int:
        calls.append(call)
        return 0

    monkeypatch.setattr("exacta.cli.serve.serve", serve)
    assert run(command[2:]) == 0
    (call,) = calls
    return call


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    """The program is one that is there, since systemd looks for it."""
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace(PROGRAM, "/bin/true"))
    verified = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    assert (verified.returncode, verified.stdout, verified.stderr) == (0, "", "")
    secured = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", f"--threshold={HIGHEST_EXPOSURE}", str(unit)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert secured.returncode == 0, secured.stdout


def test_the_unit_serves_what_its_configuration_says(monkeypatch: pytest.MonkeyPatch) -> None:
    (command,) = settings()["ExecStart"]
    file = read_configuration_file(PACKAGING / "exacta.toml")
    assert (file.mistakes, file.notes()) == ((), [])
    assert file.data == Path("/var/lib") / settings()["StateDirectory"][0]
    placed = command.replace("/etc/exacta/exacta.toml", str(PACKAGING / "exacta.toml"))
    configuration, data, doors = called(monkeypatch, shlex.split(placed))
    assert (configuration, data, doors) == (
        Configuration(),
        file.data,
        doors_of({"listen": Endpoint("127.0.0.1", 9092)}),
    )


def test_the_units_user_is_made() -> None:
    (user,) = settings()["User"]
    made = (PACKAGING / "systemd" / "exacta.sysusers.conf").read_text().splitlines()
    assert [line.split()[:2] for line in made if not line.startswith("#")] == [["u", user]]


def test_all_addresses_are_of_the_projects_repository() -> None:
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    assert settings()["Documentation"] == [urls["Documentation"]]


def test_the_container_listens_at_its_port_and_keeps_its_volume(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = (PACKAGING / "container" / "Containerfile").read_text().splitlines()
    instructions = dict(line.split(" ", 1) for line in lines if line and not line.startswith("#"))
    command = [*json.loads(instructions["ENTRYPOINT"]), *json.loads(instructions["CMD"])]
    configuration, data, doors = called(monkeypatch, command)
    assert configuration == Configuration()  # a start without arguments opens nothing: it is refused
    assert data == Path(instructions["VOLUME"])
    assert doors == doors_of(
        {"listen": Endpoint("", int(instructions["EXPOSE"])), "advertise": Endpoint("127.0.0.1", 9092)}
    )
    script = (PACKAGING / "container" / "install.sh").read_text()
    assert f"user={instructions['USER']}\n" in script
