"""moto's server, which speaks S3 and keeps objects in memory: one for all tests of a process, and a bucket for each."""

import logging
import tempfile
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from exacta.adapters.objects import ObstoreObjects
from exacta.store_addresses import objects_address

_ends = ExitStack()
_started: list[str] = []
_numbers = count()
_faults: list[bool] = []


def endpoint() -> str:
    """Return where the server is, which is started now if it is not yet."""
    if not _started:
        server = pytest.importorskip("moto.server", reason="there is no moto; `pip install moto[server]` gets one")
        started = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        started.start()
        started._server.app = _Faulty(started._server.app)
        logging.getLogger("werkzeug").setLevel(logging.WARNING)  # a line for each request
        _ends.callback(started.stop)
        host, port = started.get_host_and_port()
        _started.append(f"http://{host}:{port}")
    return _started[0]


def end() -> None:
    """End the server, if there is one."""
    _started.clear()
    _ends.close()


class _Faulty:
    """The server, which refuses a put where a test wants it, before or after it was carried out."""

    def __init__(self, app: Callable[..., Iterable[bytes]]) -> None:
        self._app = app

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] == "PUT" and _faults:
            if _faults.pop():
                list(self._app(environ, lambda *answer: None))
            else:
                environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
            start_response("403 Forbidden", [("Content-Length", "0")])  # a store that is busy would be asked again
            return []
        return self._app(environ, start_response)


def fail_put(carried_out: bool) -> None:
    """Let the next put fail."""
    _faults.append(carried_out)


def new_bucket() -> str:
    """Make a bucket, and return its name."""
    name = f"exacta-{next(_numbers)}"
    urlopen(Request(f"{endpoint()}/{name}", method="PUT")).close()
    return name


def objects(bucket: str) -> ObstoreObjects:
    """Return a store in this bucket."""
    return ObstoreObjects(objects_address(f"s3://{bucket}/logs?endpoint={endpoint()}&region=us-east-1"), credentials())


def credentials() -> Path:
    """Return a file of keys to the store."""
    path = Path(_ends.enter_context(tempfile.TemporaryDirectory())) / "keys"
    path.write_text("# as a secret is mounted\nAWS_ACCESS_KEY_ID=exacta\nAWS_SECRET_ACCESS_KEY = exacta-secret\n")
    return path
