"""A real Prometheus for tests: found on the machine, or unpacked from Debian's package, without root.

    python -m tests.metrics.prometheus

finds one, or downloads the package and unpacks it into the cache of the repository. It ends with the exit code 1, and
says what is missing, where neither can be done. The order is: the folder that `EXACTA_TEST_PROMETHEUS` names, the
cache, `PATH`.
"""

import json
import os
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from exacta.demo.processes import free_port
from tests.waiting import wait_until

CACHE = Path(__file__).parents[2] / ".cache" / "prometheus"
START_SECONDS = 60.0


def programs() -> Path | None:
    """Return the folder of `prometheus` and `promtool`, or None where there is none."""
    given, on_path = os.environ.get("EXACTA_TEST_PROMETHEUS"), shutil.which("prometheus")
    candidates = [
        *([Path(given)] if given else []),
        CACHE / "usr" / "bin",
        *([Path(on_path).parent] if on_path else []),
    ]
    return next((each for each in candidates if (each / "promtool").exists()), None)


def unpack() -> None:
    """Download Debian's package of Prometheus, and unpack it into the cache."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for command in (["apt-get", "download", "prometheus"], ["dpkg", "-x", "*.deb", str(CACHE)]):
            found = [str(each) for each in Path(folder).glob("*.deb")]
            full = [part for each in command for part in (found if each == "*.deb" else [each])]
            if shutil.which(full[0]) is None:
                raise SystemExit(f"there is no Prometheus, and no {full[0]} to get one: put `prometheus` on PATH")
            done = subprocess.run(full, cwd=folder, capture_output=True, text=True, check=False)
            if done.returncode:
                raise SystemExit(f"{' '.join(full)}: {done.stderr.strip()}")


class Prometheus:
    """A running one."""

    def __init__(self, url: str) -> None:
        self._url = url

    def ask(self, path: str, **parameters: str) -> Any:
        """Return the data of an answer of its API. Raises AssertionError where it refuses the question."""
        try:
            with urllib.request.urlopen(f"{self._url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}") as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            with error:
                raise AssertionError(f"{parameters}: {error.read().decode()}") from None

    def value(self, expression: str) -> float | None:
        """Return the value of an expression that finds one series; None: it finds none."""
        found = self.ask("query", query=expression)["result"]
        return float(found[0]["value"][1]) if found else None


@contextmanager
def scraping(programs: Path, folder: Path, target: str, rules: Path) -> Iterator[Prometheus]:
    """Run one that scrapes a target each second."""
    configuration = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(rules)],
        "scrape_configs": [{"job_name": "exacta", "static_configs": [{"targets": [target]}]}],
    }
    (folder / "prometheus.json").write_text(json.dumps(configuration))  # JSON is YAML
    address = f"127.0.0.1:{free_port()}"
    command = [str(programs / "prometheus"), f"--config.file={folder}/prometheus.json"]
    command += [f"--storage.tsdb.path={folder}/tsdb", f"--web.listen-address={address}"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
    prometheus = Prometheus(f"http://{address}")

    def is_up() -> bool:
        assert process.poll() is None, (folder / "log").read_text()[-2000:]
        with suppress(OSError), urllib.request.urlopen(f"http://{address}/-/ready"):  # until then it refuses questions
            return prometheus.value("up") == 1
        return False

    try:
        wait_until(is_up, START_SECONDS, "Prometheus does not scrape")
        yield prometheus
    finally:
        process.terminate()
        process.wait(START_SECONDS)


if __name__ == "__main__":
    if programs() is None:
        unpack()
    print(programs())
