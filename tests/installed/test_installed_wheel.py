"""The wheel in an empty environment: a new user's first screen, as the README prints it.

`make test-dist` builds the wheel, and runs this. pip takes the wheel from the folder `EXACTA_TEST_DIST`, and what the
wheel asks for from its index.
"""

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from exacta.demo.processes import free_port
from tests.installed.conftest import ON_WHEEL
from tests.pages.blocks import ROOT, blocks_of
from tests.spark.installed import variables_without_this_machines

FIRST_SCREEN = ("Install", "A server")
ADDRESS = "127.0.0.1:9092"
FROM_A_COPY = "pip install ."
A_MINUTE_S = 60

pytestmark = ON_WHEEL


def first_screen(wheel: Path) -> tuple[str, list[str]]:
    """Return the first screen as one script, with the wheel and on a free port, and what it must print."""
    blocks = [block for block in blocks_of(ROOT / "README.md") if block.section in FIRST_SCREEN]
    assert {block.language for block in blocks} <= {"sh", "python", "text"}
    address = ADDRESS.replace("9092", str(free_port()))
    lines = ["set -euo pipefail", "trap 'kill $(jobs -p); wait' EXIT", f"export EXACTA_BOOTSTRAP_SERVERS={address}"]
    for block in blocks:
        if block.language == "sh":
            lines.append(block.text)
        elif block.language == "python":
            lines.append(f"python - <<'END'\n{block.text}END\n")
    served = re.sub(r"exacta serve(?= |$)", f"exacta serve --listen {address}", "\n".join(lines), flags=re.MULTILINE)
    assert FROM_A_COPY in served
    script = served.replace(ADDRESS, address).replace(FROM_A_COPY, f"pip install '{wheel.resolve()}'")
    return script, [block.text for block in blocks if block.language == "text"]


def test_the_first_screen_works_in_a_minute(wheel: Path, variables: dict[str, str], tmp_path: Path) -> None:
    script, expected = first_screen(wheel)
    folder = tmp_path / "folder"
    folder.mkdir()
    begun = time.monotonic()
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=variables, capture_output=True, text=True, timeout=A_MINUTE_S
    )
    taken_s = time.monotonic() - begun
    assert done.returncode == 0, done.stderr
    assert expected
    assert [text for text in expected if text not in done.stdout] == [], done.stdout
    assert (folder / "exacta-data" / "journal").is_dir()
    print(f"the first screen took {taken_s:.1f} s, with what pip downloads")


def test_the_wheel_alone_has_every_command(variables: dict[str, str], tmp_path: Path) -> None:
    """The commands load what they need when they are called, so each is called."""
    call: dict[str, Any] = {"cwd": tmp_path, "env": variables, "capture_output": True, "text": True, "check": False}
    assert subprocess.run(["pip", "install", "--quiet", "exacta-log"], **call).returncode == 0
    where = subprocess.run(["python", "-c", "import exacta; print(exacta.__file__)"], **call)
    assert where.stdout.startswith(str(tmp_path)), where
    for command in (["--version"], ["--help"], ["serve", "--help"], ["config", "show"], ["config", "reference"]):
        called = subprocess.run(["exacta", *command], **call)
        assert (called.returncode, called.stderr) == (0, ""), command
        assert called.stdout
    without = subprocess.run(["exacta", "groups", "list", "--bootstrap-server", f"127.0.0.1:{free_port()}"], **call)
    assert (without.returncode, without.stdout) == (1, "")
    assert "Traceback" not in without.stderr
    assert sys.executable not in without.stderr


def test_the_containers_steps_make_a_broker_in_a_fresh_directory(wheel: Path, tmp_path: Path) -> None:
    """No image is built: what the container file does is done here by its script, and by its own command line."""
    root, packaging = tmp_path / "root", ROOT / "packaging" / "container"
    root.mkdir()
    install = ["sh", str(packaging / "install.sh"), str(wheel.parent), str(root)]
    done = subprocess.run(install, env=variables_without_this_machines(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("exacta ")

    lines = (packaging / "Containerfile").read_text().splitlines()
    (entry,) = (json.loads(line.removeprefix("ENTRYPOINT ")) for line in lines if line.startswith("ENTRYPOINT "))
    address = f"127.0.0.1:{free_port()}"
    command = [f"{root}{word}" if word.startswith("/") else word for word in entry]
    # In a container it is ":9092", and needs the option.
    command += ["--listen", address, "--advertise", address, "--set", "allow.anonymous=PLAINTEXT"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline().startswith("exacta: listening on ")
            producer = Producer({"bootstrap.servers": address})
            producer.produce("orders", b"42 apples")
            assert producer.flush(30) == 0
            del producer
            server.terminate()
            assert server.wait(30) == 0
        finally:
            server.kill()
    assert (root / "var/lib/exacta/journal").is_dir()
