"""The same seed is the same world, byte for byte: in one process, and in another with other hashes."""

import os
import subprocess
import sys
from pathlib import Path

from simulation.runner import run_world

ROOT = Path(__file__).parents[2]
FIRST, SEEDS = 30, 2
"""Worlds in which less happens than in most."""


def digests(hash_seed: str) -> str:
    command = [sys.executable, "-m", "simulation", "--first-seed", str(FIRST), "--seeds", str(SEEDS), "--digests"]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=200, check=True)
    return done.stdout


def test_a_seed_has_one_trace_in_every_process() -> None:
    first = digests("1")
    assert len(first.splitlines()) == SEEDS
    assert len({line.split()[1] for line in first.splitlines()}) == SEEDS, "each seed is a world of its own"
    assert digests("2") == first


def test_a_seed_has_one_trace_within_a_process() -> None:
    lines: list[list[str]] = [[], []]
    runs = [run_world(5, write=each.append) for each in lines]
    assert lines[0] == lines[1]
    assert runs[0].digest == runs[1].digest
    assert len(lines[0]) > 500
