"""The generated code is made of `messages.proto`, and only those who ask for Pulsar load it."""

import subprocess
import sys
from pathlib import Path

from google.protobuf.internal import api_implementation

ROOT = Path(__file__).parents[3]
NAME = "exacta/protocol/pulsar/messages"


def test_the_code_is_generated_from_the_definition(tmp_path: Path) -> None:
    """If this fails, run `make pulsar-messages`."""
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I.", f"--python_out={tmp_path}", f"--pyi_out={tmp_path}"]
    subprocess.run([*command, f"{NAME}.proto"], cwd=ROOT / "src", check=True)
    for ending in ("_pb2.py", "_pb2.pyi"):
        generated, ours = tmp_path / f"{NAME}{ending}", ROOT / "src" / f"{NAME}{ending}"
        assert generated.read_text() == ours.read_text()


def test_messages_are_read_by_compiled_code() -> None:
    assert api_implementation.Type() == "upb"


def test_a_broker_for_kafkas_clients_loads_no_protobuf() -> None:
    code = "import sys, exacta.server, exacta.cli; sys.exit('google.protobuf' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
