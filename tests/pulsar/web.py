"""A client of Pulsar's web interface."""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

from tests.pulsar.wire import ANSWER_SECONDS

JSON = "application/json"
METADATA_JSON = "application/vnd.partitioned-topic-metadata+json"


class Web:
    """A client of the web interface. `pulsar_url` is where the protocol is spoken."""

    def __init__(self, url: str, pulsar_url: str) -> None:
        self.url = url
        self.pulsar_url = pulsar_url

    def ask(
        self,
        method: str,
        path: str,
        body: str | None = None,
        media_type: str | None = JSON,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Any]:
        """Return the status, and the body: from JSON where it is that."""
        sent = dict(headers or {})
        if media_type is not None and body is not None:
            sent["Content-Type"] = media_type
        data = None if body is None else body.encode()
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
