"""The main program of a child process that runs one job of a journal (see `child_process`)."""

import os
import pickle
import signal
import sys
import threading
from pathlib import Path

from exacta.adapters.local.background_files import BackgroundFiles
from exacta.adapters.local.child_process import LENGTH


def main(directory: str) -> None:
    """Run the job that standard input holds, and write what it returns or raises to standard output."""
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # in the background of the session it may write to the terminal
    # Whatever the job prints must not get among the answer.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests = sys.stdin.buffer
    (length,) = LENGTH.unpack(requests.read(LENGTH.size))
    job, args = pickle.loads(requests.read(length))
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        answer = pickle.dumps((None, job(BackgroundFiles(Path(directory)), *args)))
    except Exception as error:  # noqa: BLE001  # it is raised where the job was asked for
        answer = pickle.dumps((error, None))
    with answers:
        answers.write(answer)
    os._exit(0)


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(1)
