"""The section "The first user" of docs/how-to/logins.md, word for word but for addresses and places of files."""

import shlex
from collections.abc import Mapping
from pathlib import Path

from typer.testing import CliRunner

from exacta.cli.app import app
from exacta.testing.authority import Authority
from tests.pages.blocks import ROOT, blocks_of
from tests.server.test_server import Process

PAGE = ROOT / "docs/how-to/logins.md"


def blocks() -> list[str]:
    """Return the examples of the section: two files and a command each, with the output of the first one between."""
    return [each.text for each in blocks_of(PAGE) if each.section == "The first user"]


def replaced(text: str, places: Mapping[str, str]) -> str:
    for before, after in places.items():
        text = text.replace(before, after)
    return text


def run(command: str, typed: str = "") -> str:
    program, *arguments = shlex.split(command)
    assert program == "exacta"
    result = CliRunner().invoke(app, arguments, input=typed)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_section_does_what_it_says(tmp_path: Path) -> None:
    server_file, serve, output, client_file, add, login = blocks()
    authority = Authority("127.0.0.1")
    places = {
        "listeners=SASL_SSL://:9093": "listeners=SASL_SSL://127.0.0.1:0",
        "SASL_SSL://broker.example.org:9093": "SASL_SSL://127.0.0.1:0",
        "/etc/exacta/server.pem": authority.server,
        "/etc/exacta/ca.pem": authority.ca,
        "data/first-user.token": str(tmp_path / "data" / "first-user.token"),
        "client.properties": str(tmp_path / "client.properties"),
    }
    (tmp_path / "server.properties").write_text(replaced(server_file, places))
    assert shlex.split(serve) == ["exacta", "serve", "--config", "server.properties", "--data", "data"]
    served = Process(tmp_path / "data", "--config", str(tmp_path / "server.properties"), listen=None)
    try:
        follow(served, tmp_path, places, (output, client_file, add, login))
    finally:
        served.end(15)


def follow(served: Process, folder: Path, places: dict[str, str], examples: tuple[str, ...]) -> None:
    """Do what the section says behind the start."""
    output, client_file, add, login = examples
    places["broker.example.org:9093"] = "{}:{}".format(*served.address)
    assert served.process.stdout is not None
    (printed,) = output.splitlines()[1:]
    told = served.process.stdout.readline().rstrip()
    assert told == printed.replace("/var/lib/exacta/data", str(folder / "data"))
    (folder / "client.properties").write_text(replaced(client_file, places))
    assert "user admin logs in" in run(replaced(add, places), typed="pencil\npencil\n")
    assert not (folder / "data" / "first-user.token").exists()
    with (folder / "client.properties").open("a") as file:
        file.write(login.replace("...", "pencil"))
    config = str(folder / "client.properties")
    assert run(f"exacta acls list --config {config}").count("User:admin") == 5
    run(f"exacta acls add User:alice Read --topic orders --config {config}")
