"""Fixtures: a broker for the test session, and a way to run a command on it."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from exacta.cli.app import app
from tests.spark.clusters import a_cluster, new_topic


class Commands:
    """Runs commands on one cluster, and fails where one ends with another exit code than is expected."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def __call__(self, *arguments: str, code: int = 0, typed: str | bytes = "") -> str:
        """Return what the command printed."""
        return self.both(*arguments, code=code, typed=typed)[0]

    def both(self, *arguments: str, code: int = 0, typed: str | bytes = "") -> tuple[str, str]:
        """Return what the command printed, and what it said beside that."""
        done = CliRunner().invoke(app, [*arguments, "--bootstrap-server", self.bootstrap], input=typed)
        assert done.exit_code == code, (arguments, done.exit_code, done.stdout, done.stderr, done.exception)
        return done.stdout, done.stderr

    def refused(self, *arguments: str, code: int = 1, typed: str | bytes = "") -> str:
        """Return the one line that says why the command was refused."""
        out, err = self.both(*arguments, code=code, typed=typed)
        assert (out, err.count("\n")) == ("", 1), (out, err)
        return err.removeprefix("exacta: ").rstrip("\n")

    def found(self, *arguments: str) -> Any:
        """Return what the command printed as JSON."""
        return json.loads(self(*arguments, "--output", "json"))


@pytest.fixture(scope="session")
def bootstrap():
    with a_cluster() as servers:
        yield servers


@pytest.fixture
def run(bootstrap):
    return Commands(bootstrap)


@pytest.fixture
def topic(bootstrap):
    return new_topic(bootstrap, 2)
