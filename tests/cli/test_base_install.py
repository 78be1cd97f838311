"""The commands of the first hour need nothing but the base install: no extra's package is loaded."""

import json
import os
import subprocess
import sys

import exacta

PROGRAM = """
import io, json, sys
from importlib.abc import MetaPathFinder

class WithoutExtras(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in %r:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, WithoutExtras())
from exacta.cli import main
shown = []
for arguments, typed in json.load(sys.stdin):
    sys.argv = ["exacta", *arguments]
    sys.stdin, sys.stdout = io.TextIOWrapper(io.BytesIO(typed.encode())), io.TextIOWrapper(io.BytesIO())
    try:
        main()
    except SystemExit as ended:
        if ended.code:
            sys.exit(f"{arguments} ended with {ended.code}")
    sys.stdout.flush()
    shown.append(sys.stdout.buffer.getvalue().decode())
json.dump(shown, sys.__stdout__)
"""
OF_EXTRAS = (
    *("pyspark", "pyarrow", "numpy", "pandas", "aiokafka", "confluent_kafka", "kafka", "cryptography", "psutil"),
    *(
        "google",
        "mmh3",
        "starlette",
        "uvicorn",
        "h11",
        "psycopg",
        "asyncpg",
        "obstore",
        "pulsar",
        "pytest",
        "hypothesis",
    ),
)


def test_a_topic_is_created_written_and_read_without_any_extra() -> None:
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")
    calls = [
        ("cluster wait", ""),
        ("topics create orders -p 1", ""),
        *((f"produce orders -z {codec}", f"{codec * 50}\n") for codec in codecs),
        ("consume orders -e --group g -c 1", ""),
        ("consume orders -e -o -1", ""),
        ("groups reset g --to latest --yes", ""),
        ("groups describe g", ""),
        ("config describe topic orders --all", ""),
        ("transactions list", ""),
        ("top -c 1", ""),
        ("groups delete g --yes", ""),
        ("topics delete orders --yes", ""),
    ]
    with exacta.Broker() as broker:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM % (OF_EXTRAS,)],
            input=json.dumps([(words.split(), typed) for words, typed in calls]),
            capture_output=True,
            text=True,
            env=os.environ | {"EXACTA_BOOTSTRAP_SERVERS": broker.bootstrap_servers},
            check=False,
        )
    assert done.returncode == 0, done.stderr
    shown = {words: each for (words, _), each in zip(calls, json.loads(done.stdout), strict=True)}
    assert shown["consume orders -e --group g -c 1"] == "none" * 50 + "\n"
    assert shown["consume orders -e -o -1"] == "zstd" * 50 + "\n"
    assert shown["groups describe g"].startswith("group g: Empty")
    assert "retention.ms" in shown["config describe topic orders --all"]
