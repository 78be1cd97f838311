"""kill -9 of a real process in the middle of its appends, again and again over the same real directory."""

import subprocess
import sys
from pathlib import Path

from exacta.adapters.local import LocalJournal
from tests.adapters.turns import Turns, read

ROOT = Path(__file__).parents[3]
KILLS = 4
APPENDS_BEFORE_A_KILL = 40

# Appends and writes without end; prints the number of each group once it is acknowledged.
CHILD = """
import sys
from pathlib import Path
from exacta.adapters.local import LocalJournal
from tests.adapters.turns import Turns, append, batch

turns = Turns()
journal = LocalJournal.open(Path(sys.argv[1]), turns.call_soon, segment_bytes=20_000)
number = int(journal.replay()[0] or 0) + len(list(journal.replay()[1]))
while True:
    group = [batch(1, number, b"%06d" % number * 200)]
    if number % 3 == 0 or journal.write(journal.position, group) is None:
        append(turns, journal, *group)
    number += 1
    if journal.wants_snapshot and number % 3 == 1:
        journal.save_snapshot(b"%d" % number, journal.position)
    print(number, flush=True)
"""


def test_acknowledged_groups_survive_kills(tmp_path: Path):
    acknowledged = 0
    for _ in range(KILLS):
        with subprocess.Popen(
            [sys.executable, "-c", CHILD, tmp_path], cwd=ROOT, stdout=subprocess.PIPE, text=True
        ) as child:
            assert child.stdout is not None
            for _ in range(APPENDS_BEFORE_A_KILL):
                acknowledged = int(child.stdout.readline())
            child.kill()
            acknowledged = max([acknowledged, *(int(line) for line in child.stdout if line.endswith("\n"))])
        turns = Turns()
        journal = LocalJournal.open(tmp_path, turns.call_soon)
        assert not journal.may_have_lost, "only the process was killed"
        blob, events = journal.replay()
        found = int(blob or 0) + len(list(events))
        assert acknowledged <= found <= acknowledged + 1
        data = read(turns, journal, journal.find(1, 0, found, 1 << 40))
        assert data == b"".join(b"%06d" % number * 200 for number in range(found))
        journal.close()
    assert acknowledged >= KILLS * APPENDS_BEFORE_A_KILL
