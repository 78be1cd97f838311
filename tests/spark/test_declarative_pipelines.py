"""Spark's declarative pipelines (`spark-pipelines run`) with sinks of `format("exacta")`."""

import sys
from collections import Counter
from pathlib import Path

import pytest

from exacta.demo.processes import DriverProcess
from tests.pages.blocks import blocks_of
from tests.spark import faults
from tests.spark.clusters import held_back, new_topic, read_committed
from tests.spark.lives import wait_until
from tests.spark.queries import fill
from tests.spark.quick_java import quick_spark_environment

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
COMMAND = Path(sys.executable).parent / "spark-pipelines"
ENDS_WITHIN_S = 180.0

PAGE = ROOT / "docs/how-to/declarative-pipelines.md"
FLOWS, SPECIFICATION = (block.text for block in blocks_of(PAGE)[:2])

GUARDED = """
dp.create_sink("guarded", "exacta", {**cluster, "topic": "TOPIC", "transactional.id.prefix": "TOPIC"})


@dp.append_flow(target="guarded")
def also_from_the_web():
    return rows_of("web-orders")
"""


def replaced(text: str, changes: dict[str, str]) -> str:
    """Return a text with these changes, each of which must be one."""
    for before, after in changes.items():
        assert before in text, before
        text = text.replace(before, after)
    return text


class Pipeline:
    """The pipeline of the page, and one more flow, whose sink has a name on the cluster."""

    def __init__(self, bootstrap: str, directory: Path) -> None:
        self.bootstrap = bootstrap
        self.directory = directory
        self.web, self.shops = new_topic(bootstrap, 2), new_topic(bootstrap, 2)
        self.orders, self.guarded = new_topic(bootstrap, 3), new_topic(bootstrap, 3)
        self.log = directory / "log"
        self.specification = directory / "spark-pipeline.yml"
        self.specification.write_text(replaced(SPECIFICATION, {"/srv/orders": str(directory)}))
        flows = FLOWS + GUARDED.replace("TOPIC", self.guarded)
        changes = {
            "127.0.0.1:9092": bootstrap,
            '"topic": "orders"': f'"topic": "{self.orders}", "fault.directory": "{directory}"',
            '"orders", "exacta"': '"orders", "faulty"',
            '"web-orders"': f'"{self.web}"',
            '"shop-orders"': f'"{self.shops}"',
            'startingOffsets="earliest"': 'startingOffsets="earliest", maxOffsetsPerTrigger=40',
        }
        (directory / "flows.py").write_text(replaced(flows, changes))
        # Spark finds the format by the name of this module.
        (directory / "pyspark_faulty.py").write_text("from tests.spark.faults import FaultySource as DefaultSource\n")
        (directory / "scratch").mkdir()
        self._runs: list[DriverProcess] = []

    def start(self, *arguments: str) -> DriverProcess:
        """Start an update of the pipeline."""
        environment = quick_spark_environment(self.directory / "scratch")
        found = [str(self.directory), str(ROOT), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = ":".join(filter(None, found))
        command = [str(COMMAND), "run", "--spec", str(self.specification), *arguments]
        process = DriverProcess(command, self.log, environment, self.directory)
        process.start()
        self._runs.append(process)
        return process

    def run(self, *arguments: str) -> int:
        """Update the pipeline; return the exit code of the command."""
        process = self.start(*arguments)
        assert process.wait(ENDS_WITHIN_S), self.log.read_text()[-6000:]
        code = process.exit_code()
        assert code is not None
        return code

    def kill_at(self, point: str, skip: int) -> None:
        """Update the pipeline, and kill it where it has come to a point of the sink's protocol `skip` times before."""
        already = len(faults.struck(self.directory))
        faults.arm(self.directory, point, skip=skip)
        process = self.start()
        wait_until(lambda: len(faults.struck(self.directory)) > already or process.exit_code() is not None, point)
        assert process.exit_code() is None, self.log.read_text()[-6000:]
        process.kill_tree(freeze_workers=False)
        process.kill_survivors()

    def counts(self, topic: str) -> Counter[int]:
        """Count how many rows are there how often."""
        return Counter(Counter(int(value) for _, _, value in read_committed(self.bootstrap, topic)).values())

    def end(self) -> None:
        """End what is left of it."""
        for process in self._runs:
            process.stop(0)


@pytest.fixture
def pipeline(bootstrap, tmp_path):
    made = Pipeline(bootstrap, tmp_path)
    yield made
    made.end()


def test_two_flows_into_one_sink_killed_and_started_again_and_refreshed(pipeline):
    fill(pipeline.bootstrap, pipeline.web, range(100))
    fill(pipeline.bootstrap, pipeline.shops, range(1000, 1100))
    pipeline.kill_at(faults.ALL_TASKS_DONE, skip=1)
    pipeline.kill_at(faults.DECIDED, skip=1)
    fill(pipeline.bootstrap, pipeline.web, range(100, 120))
    assert pipeline.run() == 0, pipeline.log.read_text()[-6000:]
    assert pipeline.counts(pipeline.orders) == {1: 220}
    assert pipeline.counts(pipeline.guarded) == {1: 120}
    assert held_back(pipeline.bootstrap, pipeline.orders) == {}
    notes = pipeline.directory.glob("storage/_checkpoints/orders/*/0/exacta/sink.json")
    assert sorted(note.parts[-4] for note in notes) == ["from_shops", "from_the_web"]

    # A full refresh gives each flow a new checkpoint, so each flow is a new query.
    assert pipeline.run("--full-refresh-all") != 0
    assert pipeline.counts(pipeline.orders) == {2: 220}
    # The name on the cluster has a past with another query.
    assert pipeline.counts(pipeline.guarded) == {1: 120}
    assert f"the job named '{pipeline.guarded}' has committed batches up to" in pipeline.log.read_text()
