"""The application of the web front: Starlette's, with errors in JSON. It serves more once the broker is there.

It reads bytes before a login.
"""

from collections.abc import Sequence
from typing import TypeAlias

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import Receive, Scope, Send

from exacta.web.answers import json_answer

Routes: TypeAlias = Sequence[BaseRoute]


class Application:
    """Serves some routes from the beginning, and others later; until then all others are answered with 503."""

    def __init__(self, first: Routes) -> None:
        self._first = first
        self.withdraw()

    def serve(self, others: Routes) -> None:
        """Serve these routes, too: the broker is there."""
        self._serves = _starlette([*self._first, *others])

    def withdraw(self) -> None:
        """Serve the first routes alone again: the broker is gone, and another one comes."""
        self._serves = _starlette(self._first)
        self._serves.router.default = _not_yet

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self._serves(scope, receive, send)


def _starlette(routes: Routes) -> Starlette:
    application = Starlette(routes=routes, exception_handlers={HTTPException: _refused})
    application.router.redirect_slashes = False  # a slash belongs to a name
    return application


async def _not_yet(scope: Scope, receive: Receive, send: Send) -> None:
    answer = json_answer(503, {"reason": "the broker recovers: /health/ready says how far it is"})
    await answer(scope, receive, send)


async def _refused(http: HttpRequest, error: Exception) -> Response:
    """Say in JSON that there is no such path, or that it has no such method."""
    assert isinstance(error, HTTPException)
    answer = json_answer(error.status_code, {"reason": error.detail})
    answer.headers.update(error.headers or {})
    return answer
