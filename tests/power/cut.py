"""Taking back, in real files, what a machine without power forgets."""

import pickle
import random
from pathlib import Path
from typing import Any

SECTOR_BYTES = 512


def cut(directory: Path, notes: Path, chance: random.Random) -> int:
    """Lose any of the sectors that no sync covered, of a server that was killed; return how many were lost."""
    lost = 0
    share = chance.choice([0.0, 0.3, 0.7, 1.0])
    for name, writes in _unsynced(notes).items():
        path = directory / name
        if path.exists():
            found = path.read_bytes()
            left, count = _without_some(found, _undone(found, writes), share, chance)
            path.write_bytes(left)
            lost += count
    return lost


def _unsynced(notes: Path) -> dict[str, list[tuple[int, bytes, int]]]:
    """Return each file's writes that no sync covered: where, what lay there before, and the size before."""
    pending: dict[str, list[tuple[int, tuple[int, bytes, int]]]] = {}
    with notes.open("rb") as file:
        for number, note in enumerate(_read(file)):
            match note:
                case ("wrote", name, offset, before, size):
                    pending.setdefault(name, []).append((number, (offset, before, size)))
                case ("synced", name, count):
                    pending[name] = [each for each in pending.get(name, []) if each[0] >= count]
                case ("replaced", name):
                    pending.pop(name, None)
                case ("renamed", name, new_name):
                    pending[new_name] = pending.pop(name, [])
                case _:
                    raise AssertionError(note)
    return {name: [write for _, write in writes] for name, writes in pending.items() if writes}


def _read(file: Any) -> Any:
    while True:
        try:
            yield pickle.load(file)  # our own
        except (EOFError, pickle.UnpicklingError):
            return  # the last one was cut short, and what it announces never came


def _undone(found: bytes, writes: list[tuple[int, bytes, int]]) -> bytes:
    content = bytearray(found)
    for offset, before, size in reversed(writes):
        content.extend(bytes(max(0, offset - len(content))))
        content[offset : offset + len(before)] = before
        del content[size:]
    return bytes(content)


def _without_some(found: bytes, durable: bytes, share: float, chance: random.Random) -> tuple[bytes, int]:
    """Return what is left: of the sectors that differ, this share as it was found, the rest as it was durable."""
    left, lost = bytearray(durable), 0
    for start in range(0, len(found), SECTOR_BYTES):
        end = min(start + SECTOR_BYTES, len(found))
        if found[start:end] == durable[start:end]:
            continue
        if chance.random() < share:
            left.extend(bytes(max(0, end - len(left))))
            left[start:end] = found[start:end]
        else:
            lost += 1
    return bytes(left), lost
