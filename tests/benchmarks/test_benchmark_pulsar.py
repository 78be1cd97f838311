"""The benchmark beside Apache Pulsar, without Pulsar: what it needs, what it starts, and the talk with the load."""

import shutil
import stat

import pytest
from benchmarks.bounds import PULSAR_BOUNDS
from benchmarks.clients import ReadingFailedError
from benchmarks.processes import Usage
from benchmarks.pulsar import distribution
from benchmarks.pulsar.cases import cases
from benchmarks.pulsar.client import JavaClient, LoadFailedError
from benchmarks.pulsar.standalone import Standalone
from benchmarks.session import Scale, phase_figures

SCALE = Scale(seconds=1, warm_up_s=1)

LOAD = """#!/bin/sh
echo READY
read -r line
echo MEASURED
read -r line
echo '{"operations": 4, "seconds": 2.0, "payload_bytes": 400, "acknowledged": 6, "found": %d, "latencies_ms": [1, 2]}'
"""


@pytest.fixture
def java(monkeypatch, tmp_path):
    """Let a script be run in Java's place."""

    def write(text):
        program = tmp_path / "bin" / "java"
        program.parent.mkdir(exist_ok=True)
        program.write_text(text)
        program.chmod(program.stat().st_mode | stat.S_IEXEC)
        monkeypatch.setenv("PATH", str(program.parent), prepend=":")
        return JavaClient(jars=tmp_path, classes=tmp_path)

    return write


def measure(client):
    return client.measure("transform", "pulsar://none", SCALE, 1, lambda: Usage(cpu_s=1, resident_bytes=1_000_000))


def test_every_bound_belongs_to_a_case(tmp_path):
    known = cases(JavaClient(jars=tmp_path, classes=tmp_path))
    assert {case for case, _ in PULSAR_BOUNDS} <= set(known)


def test_a_load_is_measured_between_its_lines(java):
    phase, report = measure(java(LOAD % 6))
    figures = {figure.name: figure.value for figure in phase_figures("case", "txn/s", phase)}
    assert figures["txn/s"] == 2
    assert figures["p99 ms"] == 2
    assert report.acknowledged == 6


@pytest.mark.parametrize("found", [5, 7, -6])
def test_a_rate_counts_for_nothing_if_what_was_acknowledged_is_not_there_once(java, found):
    with pytest.raises(ReadingFailedError, match=f"6 messages were acknowledged, a reader finds {found}"):
        measure(java(LOAD % found))


def test_a_load_that_fails_says_why(java):
    with pytest.raises(LoadFailedError, match="no broker there"):
        measure(java("#!/bin/sh\necho no broker there >&2\n"))
    with pytest.raises(LoadFailedError, match="said MEASURED instead of READY"):
        measure(java("#!/bin/sh\necho MEASURED\n"))


def test_a_missing_compiler_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(distribution.PulsarUnavailableError, match="needs javac"):
        distribution.compile_load(tmp_path, tmp_path)
    with pytest.raises(distribution.PulsarUnavailableError, match="Apache Pulsar needs java"):
        distribution.fetch(tmp_path)


def test_pulsar_is_durable_and_keeps_to_its_folder(tmp_path):
    standalone = Standalone(jars=tmp_path / "jars", folder=tmp_path / "data", port=1, web_port=2, bookie_port=3)
    standalone.prepare()
    text = (tmp_path / "data" / "standalone.conf").read_text()
    assert "journalSyncData=true" in text.splitlines()
    assert "transactionCoordinatorEnabled=true" in text.splitlines()
    folders = [each for each in standalone.command() if str(tmp_path) in each and "jars" not in each]
    assert all(each.startswith(str(tmp_path / "data")) for each in folders)
    assert not standalone.is_ready()
