"""A tree of processes shaped as Spark's: driver, Java, daemon (a process group of its own), two workers.

Run as `python fake_spark.py driver`. Each process prints its name and number once it is there, then waits for ever.
"""

import os
import subprocess
import sys
import threading

DAEMON_ARGUMENTS = ["daemon", "pyspark.daemon", "pyspark.worker"]


def announce(name):
    sys.stdout.write(f"{name} {os.getpid()}\n")
    sys.stdout.flush()


def main(role):
    if role == "driver":
        child = subprocess.Popen([sys.executable, __file__, "java"])
    elif role == "java":
        child = subprocess.Popen([sys.executable, __file__, *DAEMON_ARGUMENTS])
    else:
        os.setpgid(0, 0)
        for _ in range(2):
            if os.fork() == 0:
                announce("worker")
                threading.Event().wait()
        child = None
    announce(role)
    if child is not None:
        child.wait()
    threading.Event().wait()


main(sys.argv[1])
