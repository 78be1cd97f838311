"""Killing a tree of processes shaped as Spark's."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from exacta.demo.processes import DriverProcess, free_port

FAKE_SPARK = Path(__file__).with_name("fake_spark.py")
PROCESSES = {"driver": 1, "java": 1, "daemon": 1, "worker": 2}


@pytest.fixture
def driver(tmp_path):
    process = DriverProcess([sys.executable, str(FAKE_SPARK), "driver"], tmp_path / "log")
    process.start()
    processes = {}
    try:
        processes.update(wait_for_tree(process.log))
        yield process, processes
    finally:
        for found in processes.values():
            for each in found:
                if each.is_running():
                    each.kill()
        process.kill()


def wait_for_tree(log):
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        lines = [line.split() for line in log.read_text().splitlines() if line.endswith(tuple("0123456789"))]
        found = {name: [int(pid) for n, pid in lines if n == name] for name in PROCESSES}
        if {name: len(pids) for name, pids in found.items()} == PROCESSES:
            return {name: [psutil.Process(pid) for pid in pids] for name, pids in found.items()}
        time.sleep(0.01)
    raise AssertionError(f"the tree is not complete: {log.read_text()}")


def gone(process):
    try:
        return process.status() == psutil.STATUS_ZOMBIE or not process.is_running()
    except psutil.NoSuchProcess:
        return True


def wait_until_gone(processes):
    _, alive = psutil.wait_procs([process for process in processes if not gone(process)], timeout=10)
    return all(map(gone, alive))


def test_workers_are_told_from_their_daemon(driver):
    process, processes = driver
    assert {worker.pid for worker in process.task_workers()} == {worker.pid for worker in processes["worker"]}


def test_workers_outlive_their_driver_until_they_are_killed(driver):
    process, processes = driver
    zombies = process.kill_tree(freeze_workers=False)
    assert wait_until_gone([*processes["driver"], *processes["java"], *processes["daemon"]])
    assert process.exit_code() == -signal.SIGKILL
    assert zombies.alive() == 2
    zombies.kill()
    assert wait_until_gone(processes["worker"])
    assert zombies.alive() == 0


def test_frozen_workers_stand_still_until_they_are_thawed(driver):
    process, processes = driver
    zombies = process.kill_tree(freeze_workers=True)
    assert {worker.status() for worker in processes["worker"]} == {psutil.STATUS_STOPPED}
    zombies.thaw()
    assert psutil.STATUS_STOPPED not in {worker.status() for worker in processes["worker"]}
    zombies.kill()
    assert wait_until_gone(processes["worker"])


def test_a_driver_that_does_not_stop_is_killed_with_all_below_it(driver):
    process, processes = driver
    assert not process.stop(timeout_s=0)
    assert wait_until_gone([each for found in processes.values() for each in found])


def test_what_a_driver_leaves_behind_when_it_ends_by_itself_is_killed(driver):
    process, processes = driver
    processes["driver"][0].kill()
    assert process.wait(timeout_s=10)
    process.kill_survivors()
    assert wait_until_gone([each for found in processes.values() for each in found])


def test_a_driver_that_ended_by_itself_is_started_again(driver):
    process, processes = driver
    processes["driver"][0].kill()
    assert process.wait(timeout_s=10)
    process.kill_survivors()
    earlier = process.process
    process.start()
    assert earlier.stdin.closed
    assert process.exit_code() is None
    assert process.process.pid != earlier.pid


def test_a_process_that_has_the_number_of_a_dead_driver_is_left_alone(driver):
    process, _ = driver
    process.kill_tree(freeze_workers=False).kill()
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True)
    process.process.pid = other.pid
    process.stop(timeout_s=0)
    other.communicate(b"\n", timeout=30)
    assert other.returncode == 0, "it was killed"


def test_lost_tasks_are_counted_in_the_log(tmp_path):
    process = DriverProcess([], tmp_path / "log")
    process.log.write_text(
        "26/11/21 15:51:48 WARN TaskSetManager: [queryId = ba680] [batchId = 12] Lost task 1.3 in stage 76.0 (TID 12)\n"
        "26/11/21 15:51:49 WARN TaskSetManager: Lost task 0.0 in stage 77.0 (TID 125)\n"
        "org.apache.spark.SparkException: most recent failure: Lost task 1.3 in stage 76.0 (TID 122)\n"
    )
    assert process.lost_tasks() == 2


def test_a_free_port_can_be_listened_on():
    import socket

    with socket.create_server(("127.0.0.1", free_port())) as server:
        assert server.getsockname()[1] > 0
