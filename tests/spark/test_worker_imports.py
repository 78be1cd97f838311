"""A worker of Spark loads only what it needs."""

import subprocess
import sys


def test_a_worker_loads_neither_the_broker_nor_its_event_loop():
    code = (
        "import sys, pyspark_exacta, exacta.spark.sink.task, exacta.spark.source.reading\n"
        "print(sorted(name for name in sys.modules if name.startswith(('exacta.core', 'exacta.engine', 'exacta.kafka', "
        "'exacta.adapters', 'exacta.server.server', 'uvloop', 'typer', 'rich', 'confluent_kafka'))))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"
