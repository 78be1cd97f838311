"""Looks now and then whether what clients have shown is trusted on: the truststores of doors, and the keys of tokens.

Nothing is looked at where no door asks for certificates, and nobody logs in by tokens.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from exacta.front.threads import on_thread
from exacta.server.reception import Reception

if TYPE_CHECKING:
    from exacta.security.token_keys import KeySet

LOOK_S: Final = 0.5
"""The files are looked at so often: what is gone from them ends within a second."""


class Trust:
    """The one of a server. `lost` is called when something is gone."""

    def __init__(
        self,
        reception: Reception,
        token_keys: "KeySet | None",
        loop: asyncio.AbstractEventLoop,
        lost: Callable[[], None],
    ) -> None:
        self._reception = reception
        self._token_keys = token_keys
        self._loop = loop
        self._lost = lost
        self._seen = 0
        self._has_stopped = False

    def start(self) -> None:
        """Begin to look."""
        if self._token_keys is not None or self._reception.asks_for_certificates:
            self._loop.call_later(LOOK_S, self._look)

    def stop(self) -> None:
        """Look no more."""
        self._has_stopped = True

    def _look(self) -> None:
        if self._has_stopped:
            return
        self._reception.look_at_certificates(self._loop.time())
        if self._token_keys is not None and self._token_keys.is_due():
            on_thread(self._token_keys.read_again, self._looked)
        else:
            self._looked(None)

    def _looked(self, failure: object) -> None:
        """Tell of what is gone. Why keys cannot be read their set says; anything else is a defect."""
        losses = self._reception.trust_losses + (0 if self._token_keys is None else self._token_keys.losses)
        if losses != self._seen:
            self._seen = losses
            self._lost()
        if not self._has_stopped:
            self._loop.call_later(LOOK_S, self._look)
        if isinstance(failure, Exception):
            raise failure
