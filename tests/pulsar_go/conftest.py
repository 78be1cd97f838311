"""Only in the suite `pulsar-go` (Go): brings the client's source, builds its tests once, and runs a broker.

The tests of the client are written for one broker on this machine: its ports, its certificates and its largest message
stand in them. So the broker listens where they look, and a port that is taken is an error.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import Struct

# Elsewhere nothing here is even imported.
collect_ignore_glob = [] if os.environ.get("EXACTA_TEST_PULSAR_GO") else ["test_*.py"]

MODULE = "github.com/apache/pulsar-client-go"
BUILD_SECONDS = 900
EXIT_SECONDS = 30
LARGEST_MESSAGE = 1 << 20
"""`_brokerMaxMessageSize` of the client's tests."""

LISTENS = {
    "--listen": "127.0.0.1:0",
    "--pulsar-listen": "127.0.0.1:6650",
    "--pulsar-advertise": "localhost:6650",
    "--pulsar-tls-listen": "127.0.0.1:6651",
    "--pulsar-tls-advertise": "localhost:6651",
    "--web-listen": "127.0.0.1:8080",
    "--web-tls-listen": "127.0.0.1:8443",
}


class Suite(Struct, frozen=True):
    """The tests of the client: the program, the folder that it runs in, and the folder with the certificates."""

    program: Path
    folder: Path
    certificates: Path


@pytest.fixture(scope="session")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Suite:
    """Bring the source in the version of `go.mod`, which Go checks against go.sum, and build its tests."""
    told = subprocess.run(
        ["go", "mod", "download", "-json", MODULE],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=True,
        timeout=BUILD_SECONDS,
    )
    source = Path(json.loads(told.stdout)["Dir"])
    program = tmp_path_factory.mktemp("go") / "pulsar.test"
    command = ["go", "test", "-c", "-mod=readonly", "-buildvcs=false", "-o", str(program), "./pulsar"]
    subprocess.run(command, cwd=source, check=True, timeout=BUILD_SECONDS)
    return Suite(program, source / "pulsar", source / "integration-tests" / "certs")


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of ours, built."""
    found = tmp_path_factory.mktemp("pipeline") / "pipeline"
    command = ["go", "build", "-mod=readonly", "-buildvcs=false", "-o", str(found), "."]
    subprocess.run(command, cwd=Path(__file__).parent / "pipeline", check=True, timeout=BUILD_SECONDS)
    return found


@pytest.fixture(scope="session", autouse=True)
def broker(suite: Suite, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The broker that the tests look for."""
    folder = tmp_path_factory.mktemp("broker")
    options = {
        "tlsCertificateFilePath": suite.certificates / "broker-cert.pem",
        "tlsKeyFilePath": suite.certificates / "broker-key.pem",
        "pulsar.max.message.size": LARGEST_MESSAGE,
        "pulsar.transaction.repeat": "strict",
    }
    command = [sys.executable, "-m", "exacta.cli", "serve", "--data", str(folder / "data")]
    command += [word for pair in LISTENS.items() for word in pair]
    command += [word for name, value in options.items() for word in ("--set", f"{name}={value}")]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    assert process.stdout is not None
    assert process.stdout.readline(), (folder / "log").read_text()
    yield
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=EXIT_SECONDS)
    assert process.returncode == 0
    assert " ERROR " not in (folder / "log").read_text()
