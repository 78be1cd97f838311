"""A request as the parts that the protocol and the web interface share see it: it can be refused by Pulsar's errors."""

from abc import abstractmethod

from exacta.core.rejections import Rejection
from exacta.front.request import Request
from exacta.front.words import words_of
from exacta.protocol.pulsar.messages_pb2 import ServerError
from exacta.pulsar.errors import server_error


class AnsweringRequest(Request):
    """A request that has been read and not answered yet."""

    __slots__ = ()

    @abstractmethod
    def refuse(self, error: ServerError, text: str) -> None:
        """Answer with an error."""

    def reject(self, rejection: Rejection) -> None:
        """Answer with an error that says why the core has refused it."""
        self.refuse(server_error(rejection), words_of(rejection))
