"""A client of Pulsar's web interface."""

import itertools
import json
import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

import pytest

from tests.pulsar.wire import ANSWER_SECONDS

JSON = "application/json"
METADATA_JSON = "application/vnd.partitioned-topic-metadata+json"


REAL_WEB, REAL = os.environ.get("EXACTA_TEST_PULSAR_WEB"), os.environ.get("EXACTA_TEST_PULSAR")
_numbers = itertools.count()


class Web:
    """A client of the web interface. `pulsar_url` is where the protocol is spoken."""

    def __init__(self, url: str, pulsar_url: str) -> None:
        self.url = url
        self.pulsar_url = pulsar_url

    def ask(
        self,
        method: str,
        path: str,
        body: str | bytes | None = None,
        media_type: str | None = JSON,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Any]:
        """Return the status, and the body: from JSON where it is that."""
        sent = dict(headers or {})
        if media_type is not None and body is not None:
            sent["Content-Type"] = media_type
        data = body.encode() if isinstance(body, str) else body
        request = urllib.request.Request(self.url + path, data, sent, method=method)
        try:
            with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
                return answer.status, _decoded(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, _decoded(error.read())


def _decoded(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body.decode()


ours_only = pytest.mark.skipif(REAL_WEB is not None, reason="it is about what only Exacta has")


def new_name() -> str:
    return f"rest-{os.getpid()}-{next(_numbers)}"


def path(name: str, *rest: str) -> str:
    return "/".join(("/admin/v2/persistent/public/default", name, *rest))


def partitions(web: Web, name: str, *, creates: bool = False) -> tuple[int, Any]:
    return web.ask("GET", path(name, f"partitions?checkAllowAutoCreation={str(creates).lower()}"))
