"""Make the corpus of the present format again."""

import json
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.engine.corpus import DIRECTORY, EXPECTED, make
from tests.engine.test_corpus import held_by

disk = make()
shutil.rmtree(DIRECTORY, ignore_errors=True)
(DIRECTORY / "journal").mkdir(parents=True)
for name in disk.files:
    if name != "lock":
        (DIRECTORY / "journal" / name).write_bytes(disk.content(name))
with TemporaryDirectory() as scratch:
    expected = held_by(Path(shutil.copytree(DIRECTORY / "journal", Path(scratch) / "journal")))
(DIRECTORY / EXPECTED).write_text(json.dumps(expected, indent=1) + "\n")
size = sum(path.stat().st_size for path in DIRECTORY.rglob("*") if path.is_file())
print(f"{DIRECTORY}: {len(disk.files)} files, {size} bytes with what is expected")
