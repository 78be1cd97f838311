"""The leader's jobs in true processes of their own, over true files and true object stores."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from exacta.adapters.local.child_process import ChildProcess
from exacta.adapters.local.files import PosixFiles
from exacta.ports.journal import CompactionOrder
from exacta.ports.shared import Kind, ObjectStore
from tests.adapters import object_benches
from tests.adapters.bench import EVERYTHING
from tests.adapters.compacting import RULES, keyed, keys_of, last_of_each_key
from tests.adapters.shared.led import Cluster, Led
from tests.adapters.shared.test_space import clean, fold, joined


@pytest.fixture(params=sorted(set(object_benches.BENCHES) - {"memory"}))
def store(request: pytest.FixtureRequest) -> Iterator[ObjectStore]:
    """Return a store that another process can reach."""
    with object_benches.BENCHES[request.param]() as bench:
        yield bench.open()


def test_a_leader_offloads_folds_cleans_and_compacts_in_processes_of_their_own(
    tmp_path: Path, store: ObjectStore
) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    cluster = Cluster(store)
    first, second = tmp_path / "first", tmp_path / "second"
    led = Led(cluster, segment_bytes=9_000, scratch=PosixFiles(first), new_job_runner=lambda: ChildProcess(first))
    for number in range(60):
        led.append(keyed(1 + number % 2, number // 2, "abcd"[number // 2 % 4]))
    led.space.seal()
    led.append(keyed(3, 0, "a"))
    led.offloaded()
    assert fold(led) is None
    led.append(keyed(3, 1, "a"))
    assert fold(led) is None
    orders = [CompactionOrder(1, EVERYTHING, RULES)]
    floors = {1: 0, 2: 5, 3: 0}
    assert led.turns.wait(lambda done: led.space.compact(orders, floors, last_of_each_key, done)) is None
    assert clean(led, floors) > 0
    assert {each.kind for each in cluster.entries} == {*Kind}
    led.close()
    other = Led(cluster, 2, scratch=PosixFiles(second), new_job_runner=lambda: ChildProcess(second))
    last = [(26, "c"), (27, "d"), (28, "a"), (29, "b")]
    assert list(keys_of(other.content(1))) == last
    assert [offset for offset, _ in keys_of(other.content(2, 5))] == [*range(5, 30)]
    assert other.catalog.replay().blob == joined(None, iter([b"e"] * 62))
    other.close()
