"""Servers of the benchmark are started, watched and ended; and the machine is described."""

import subprocess
import sys
import time

import psutil
import pytest
from benchmarks import machine
from benchmarks.processes import (
    ServerFailedError,
    accepts_connections,
    free_ports,
    free_rows,
    listener,
    serving,
    usage,
)

LISTEN = """
import socket, sys
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("listening", flush=True)
while True:
    server.accept()[0].close()
"""
FAIL = "import sys; print('one', flush=True); sys.exit('no such option')"


def test_a_server_is_found_ready_and_ended_with_its_context(tmp_path):
    (port,) = free_ports(1)
    with serving([sys.executable, "-c", LISTEN, str(port)], tmp_path / "log") as server:
        server.wait_until(lambda: accepts_connections("127.0.0.1", port), timeout_s=30)
        assert listener(port) == server.process
        used = usage(server.process)
        assert used is not None
        assert used.resident_bytes > 1_000_000
        assert server.log_tail() == "listening"
    assert not server.alive()
    assert not accepts_connections("127.0.0.1", port)
    assert usage(server.process) is None


def test_a_server_that_ends_by_itself_says_why(tmp_path):
    with (
        serving([sys.executable, "-c", FAIL], tmp_path / "log") as server,
        pytest.raises(ServerFailedError, match=r"status 1: one \| no such option"),
    ):
        server.wait_until(lambda: False, timeout_s=30)


def test_a_server_that_is_never_ready_is_given_up(tmp_path):
    with (
        serving([sys.executable, "-c", LISTEN, "0"], tmp_path / "log") as server,
        pytest.raises(ServerFailedError, match="not ready after"),
    ):
        server.wait_until(lambda: False, timeout_s=0.01)
    assert not server.alive()


def test_usage_counts_children(tmp_path):
    script = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'], stdin=sys.stdin)"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE) as parent:
        process = psutil.Process(parent.pid)
        deadline_s = time.monotonic() + 30
        while not process.children() and time.monotonic() < deadline_s:
            time.sleep(0.005)
        together = usage(process)
        alone = process.memory_info().rss
        assert parent.stdin is not None
        parent.stdin.close()
    assert together is not None
    assert together.resident_bytes > alone


def test_free_ports_differ():
    ports = free_ports(5)
    assert len(set(ports)) == 5


def test_rows_of_free_ports_do_not_overlap():
    ports = {first + index for first in free_rows(3, 4) for index in range(4)}
    assert len(ports) == 12


def test_machine_is_described_without_its_name(tmp_path):
    lines = machine.facts(tmp_path)
    assert any("librdkafka" in line for line in lines)
    assert not any(str(tmp_path) in line for line in lines)
    assert machine.file_system(tmp_path) != "unknown"


def test_sync_latency_is_measured(tmp_path):
    latency = machine.sync_latency(tmp_path, syncs=5)
    assert 0 < latency.p50_ms <= latency.p99_ms
    assert list(tmp_path.iterdir()) == []


def test_usage_counts_children_that_have_ended():
    busy = "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}]); print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        used = usage(psutil.Process(process.pid))
        process.communicate(b"\n")
    assert used is not None
    assert used.cpu_s >= 0.3
