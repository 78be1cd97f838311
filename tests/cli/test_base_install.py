"""The commands of the first hour need nothing but the base install: no extra's package is loaded."""

import os
import subprocess
import sys

import exacta

PROGRAM = """
import sys
from importlib.abc import MetaPathFinder

class WithoutExtras(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in %r:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, WithoutExtras())
from exacta.cli import main
main()
"""
OF_EXTRAS = (
    *("pyspark", "pyarrow", "numpy", "pandas", "aiokafka", "confluent_kafka", "kafka", "cryptography", "psutil"),
    *("google", "mmh3", "starlette", "uvicorn", "h11", "psycopg", "pulsar", "pytest", "hypothesis"),
)


def test_a_topic_is_created_written_and_read_without_any_extra():
    with exacta.Broker() as broker:

        def run(*arguments, typed=""):
            done = subprocess.run(
                [sys.executable, "-c", PROGRAM % (OF_EXTRAS,), *arguments],
                input=typed,
                capture_output=True,
                text=True,
                env=os.environ | {"EXACTA_BOOTSTRAP_SERVERS": broker.bootstrap_servers},
                check=False,
            )
            assert done.returncode == 0, (arguments, done.stderr)
            return done.stdout

        run("cluster", "wait")
        run("topics", "create", "orders", "-p", "1")
        for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
            run("produce", "orders", "-z", codec, typed=f"{codec * 50}\n")
        assert run("consume", "orders", "-e", "--group", "g", "-c", "1") == "none" * 50 + "\n"
        assert run("consume", "orders", "-e", "-o", "-1") == "zstd" * 50 + "\n"
        run("groups", "reset", "g", "--to", "latest", "--yes")
        assert run("groups", "describe", "g").startswith("group g: Empty")
        assert "retention.ms" in run("config", "describe", "topic", "orders", "--all")
        run("transactions", "list")
        run("top", "-c", "1")
        run("groups", "delete", "g", "--yes")
        run("topics", "delete", "orders", "--yes")
