"""The files of a checkpoint lie on this machine, or in a store that pyarrow or Spark's own file system reaches.

This module owns reading, writing and listing by name. `checkpoint.py` and `note.py` own the content of the files.

Spark's own file system (Hadoop's, with the settings and credentials of the session) can be asked only in the process of
classic Spark's driver. Spark's Python workers, and a client of Spark Connect, have none: there a checkpoint that is not
on this machine is reached by pyarrow, which takes its credentials from the environment. Local paths and `file:` need
neither.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HADOOPS_NAMES_OF_S3 = ("s3a", "s3n")
"""Hadoop has three names for S3, pyarrow one."""


class CheckpointFiles(Protocol):
    """The files below one place. Names are relative, with slashes."""

    def read(self, name: str) -> bytes:
        """Return the content of a file; raises `OSError`, `FileNotFoundError` where there is none."""
        ...

    def write(self, name: str, content: bytes) -> None:
        """Write a file in place of another of that name; raises `OSError`.

        The file is there whole or not at all, except if pyarrow writes to a store with real folders (`hdfs`): there a
        crash may leave a part of it.
        """
        ...

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder, none where there is no such folder; raises `OSError`."""
        ...


def local_path(location: str) -> str | None:
    """Return the path of a location on this machine, None where it is elsewhere."""
    parts = urlsplit(location, allow_fragments=False)  # Spark tells a path that is not quoted
    if parts.scheme == "file":
        return unquote(parts.path) + (f"?{parts.query}" if parts.query else "")
    # One letter before the colon is a drive, not a scheme.
    return location if len(parts.scheme) <= 1 else None


def files_at(location: str, spark: SparkSession | None = None) -> CheckpointFiles:
    """Return the files at a location; through Spark's own file system where `spark` is a session of classic Spark."""
    path = local_path(location)
    if path is not None:
        return LocalFiles(path)
    if spark is not None and getattr(spark, "_jsparkSession", None) is not None:
        return SparkFiles(spark, location)
    return ArrowFiles(location)


class LocalFiles:
    """Files on this machine."""

    def __init__(self, root: str) -> None:
        self._root = root

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        with open(os.path.join(self._root, name), "rb") as file:
            return file.read()

    def write(self, name: str, content: bytes) -> None:
        """Write a file beside its place, then rename it."""
        path = os.path.join(self._root, name)
        folder = os.path.dirname(path)
        os.makedirs(folder, exist_ok=True)
        handle, beside = tempfile.mkstemp(prefix=".", dir=folder)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                os.fchmod(file.fileno(), 0o644)  # as Spark's own files: another user may run the query next
            os.replace(beside, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(beside)
            raise

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder."""
        try:
            return os.listdir(os.path.join(self._root, folder))
        except FileNotFoundError:
            return []


class ArrowFiles:
    """Files in a store that pyarrow reaches: `s3`, `gs`, `abfs`, `hdfs`."""

    def __init__(self, location: str) -> None:
        scheme, separator, rest = location.rstrip("/").partition(":")
        self._uri = f"{'s3' if scheme in _HADOOPS_NAMES_OF_S3 else scheme}{separator}{rest}"

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        system, root = self._system()
        with system.open_input_stream(f"{root}/{name}") as stream:
            content: bytes = stream.read()
        return content

    def write(self, name: str, content: bytes) -> None:
        """Write a file; object stores show it once it is whole."""
        system, root = self._system()
        path = f"{root}/{name}"
        try:
            self._put(system, path, content)
        except FileNotFoundError:  # a store with real folders, and this one is not there yet
            system.create_dir(path.rpartition("/")[0])
            self._put(system, path, content)

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder."""
        from pyarrow import fs

        system, root = self._system()
        found = system.get_file_info(fs.FileSelector(f"{root}/{folder}", allow_not_found=True))
        return [info.base_name for info in found]

    @staticmethod
    def _put(system: Any, path: str, content: bytes) -> None:
        with system.open_output_stream(path) as stream:
            stream.write(content)

    def _system(self) -> tuple[Any, str]:
        from pyarrow import fs

        try:
            return fs.FileSystem.from_uri(self._uri)  # type: ignore[no-any-return]
        except (OSError, ValueError) as error:
            told = str(error).partition("\n")[0]  # of hundreds of lines, some of them
            raise OSError(
                f"a Python process of Spark reaches this place through pyarrow, which says: {told}; "
                "exacta.spark.write, called from a function of foreachBatch in classic Spark, reaches it as Spark does"
            ) from error


class SparkFiles:
    """Files behind Hadoop's file systems, by which Spark itself writes a checkpoint; in classic Spark's driver only."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        self._location = location.rstrip("/")
        self._jvm: Any = spark.sparkContext._jvm
        self._state = spark._jsparkSession.sessionState()

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        with _java_errors():
            stream = self._system().open(self._path(name))
            try:
                return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
            finally:
                stream.close()

    def write(self, name: str, content: bytes) -> None:
        """Write a file beside its place, then rename it, as Spark writes its own."""
        path = self._path(name)
        beside = self._path(f"{name}.{uuid.uuid4()}.tmp")
        with _java_errors():
            try:
                context = self._jvm.org.apache.hadoop.fs.FileContext.getFileContext(path.toUri(), self._conf())
            except _java_error() as error:
                if "UnsupportedFileSystemException" not in _told(error):
                    raise
                # Stores without such a thing show a file once it is whole.
                self._put(path, content)
                return
            self._put(beside, content)
            overwrite = self._jvm.org.apache.hadoop.fs.Options.Rename.OVERWRITE
            options = self._jvm.java.lang.reflect.Array.newInstance(overwrite.getClass(), 1)
            options[0] = overwrite
            context.rename(beside, path, options)

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder."""
        try:
            with _java_errors():
                return [str(each.getPath().getName()) for each in self._system().listStatus(self._path(folder))]
        except FileNotFoundError:
            return []

    def _put(self, path: Any, content: bytes) -> None:
        stream = self._system().create(path, True)
        try:
            stream.write(content)
        finally:
            stream.close()

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self._location}/{name}")

    def _conf(self) -> Any:
        return self._state.newHadoopConf()

    def _system(self) -> Any:
        return self._path(".").getFileSystem(self._conf())


def _java_error() -> type[Exception]:
    from py4j.protocol import Py4JJavaError

    return Py4JJavaError  # type: ignore[no-any-return]


def _told(error: Any) -> str:
    return str(error.java_exception.toString())


@contextlib.contextmanager
def _java_errors() -> Iterator[None]:
    """Raise Java's I/O errors as Python's."""
    try:
        yield
    except _java_error() as error:
        told = _told(error)
        if "FileNotFoundException" in told or "NoSuchFileException" in told:
            raise FileNotFoundError(told) from None
        raise OSError(told) from None
