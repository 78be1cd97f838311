"""Change-over to the files of a repair, in one step that no crash can halve.

Theory of operation. The new files lie beside the old ones already (`repair_copy`). All files that they replace, and all
that must go, are copied durably into a directory of their own. Then the file `repair` says what is to be done. From now
on nobody opens the journal, and the repair is only ever finished, by renaming and removing. When all of that is
durable, the file `repair` goes. A crash before it is written leaves the journal as it was, and leftovers that the next
opening removes.
"""

import json

from exacta.adapters.local.damage.repair_copy import REPAIRED_SUFFIX, RepairCopy, copy
from exacta.adapters.local.files import Files, read_file
from exacta.adapters.local.format import REPAIR_NAME
from exacta.adapters.local.writer import write_file

_REPORT_NAME = "repair.txt"


def put_in_place(files: Files, copied: RepairCopy, keep: Files, report: str) -> None:
    """Keep a copy of all that is replaced or removed, with the report beside it, then change over."""
    present = set(files.names())
    for name in [*copied.put, *copied.remove]:
        if name in present:
            copy(files, name, keep, name)
    plan = {"put": copied.put, "remove": copied.remove, "kept_in": str(keep.directory)}
    made = "".join(f"made, and not there before: {name}\n" for name in copied.put if name not in present)
    write_file(keep, _REPORT_NAME, [f"{report}\n{made}".encode()])
    files.sync_directory()  # the names of what was copied
    write_file(files, REPAIR_NAME, [json.dumps(plan).encode()])
    finish(files)


def is_interrupted(files: Files) -> bool:
    """Say whether a repair was decided on and not finished."""
    return REPAIR_NAME in files.names()


def finish(files: Files) -> str | None:
    """Finish a repair that was decided on; return where the old files are kept, or None: there is none to finish."""
    names = set(files.names())
    if REPAIR_NAME not in names:
        return None
    plan = json.loads(read_file(files, REPAIR_NAME))
    for name in plan["put"]:
        if name + REPAIRED_SUFFIX in names:
            files.rename(name + REPAIRED_SUFFIX, name)
    for name in plan["remove"]:
        if name in names:
            files.remove(name)
    files.sync_directory()
    files.remove(REPAIR_NAME)
    files.sync_directory()
    return str(plan["kept_in"])
