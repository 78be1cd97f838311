"""Advice for the operator about errors of the operating system."""

import errno
import re

_ADVICE = {
    errno.ENOSPC: "make room on its file system, then start again",
    errno.EDQUOT: "raise the quota or make room, then start again",
    errno.EFBIG: "let the process write larger files (ulimit -f), then start again",
    errno.EROFS: "its file system is read-only: see in the system's log why, mount it for writing, then start again",
    errno.EACCES: "let the user that runs the server read and write the directory and all in it, then start again",
    errno.EPERM: "let the user that runs the server read and write the directory and all in it, then start again",
    errno.EIO: "the disk fails: see the system's log, and save a copy of the directory before you start again",
    errno.ENOENT: "the directory, or a file in it, was taken away: put it back as it was, then start again",
    errno.ENOTDIR: "name a directory with --data",
    errno.EMFILE: "let the process have more open files (ulimit -n), then start again",
    errno.ENFILE: "let the machine have more open files (fs.file-max), then start again",
}
_IS_FULL = (errno.ENOSPC, errno.EDQUOT)
_ERRNO = re.compile(r"\[Errno (\d+)\]")


def is_about_a_full_disk(reason: str) -> bool:
    """Return whether the operating system has refused something because there is no room."""
    found = _ERRNO.search(reason)
    return found is not None and int(found[1]) in _IS_FULL


def with_advice(reason: str) -> str:
    """Add what the operator can do where the operating system has refused something."""
    if reason.endswith("is in use by another journal"):
        return f"{reason}: stop the server that has it, or name another directory with --data"
    found = _ERRNO.search(reason)
    advice = _ADVICE.get(int(found[1])) if found is not None else None
    return reason if advice is None else f"{reason}; {advice}"
