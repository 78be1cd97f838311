"""Answers in JSON."""

import msgspec
from starlette.responses import Response


def json_answer(status: int, body: object) -> Response:
    """Return an answer whose body is a value in JSON."""
    return Response(msgspec.json.encode(body), status, media_type="application/json")
