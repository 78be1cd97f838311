"""All that is listened on for HTTP: metrics and health for operators, and questions of Apache Pulsar's clients.

It loads no web server before one is asked for (`web_front.py` does).
"""

from exacta.config.configuration import Configuration
from exacta.server.errors import ServerError
from exacta.server.listeners import Doors, Endpoint, Listener
from exacta.server.requirement import require
from exacta.server.tls import Certificate, TlsListener

_ADVICE = "the web front needs {}: install it by pip install 'exacta-log[web]'"


class WebListeners:
    """The listeners that an operator has asked for; the others are None."""

    def __init__(self, doors: Doors, configuration: Configuration, certificate: Certificate) -> None:
        self._allows_anonymous = configuration.web_allow_anonymous
        self.plain = None if doors.web_listen is None else Listener(doors.web_listen)
        self.tls: Listener | None = None
        if doors.web_tls_listen is not None:
            self.tls = TlsListener(doors.web_tls_listen, certificate=certificate)

    @property
    def all(self) -> list[Listener]:
        """All listeners there are."""
        return [each for each in (self.plain, self.tls) if each is not None]

    @property
    def listening(self) -> dict[str, Endpoint]:
        """The endpoints where clients find it, once it is open, by their names in `Doors`."""
        found = {"web_listen": self.plain, "web_tls_listen": self.tls}
        return {name: listener.listening for name, listener in found.items() if listener is not None}

    def check(self) -> None:
        """Raise ServerError where something is missing, before a port is bound."""
        if self.all:
            require("starlette", _ADVICE.format("starlette"))
            require("uvicorn", _ADVICE.format("uvicorn"))
            require("prometheus_client", _ADVICE.format("prometheus-client"))

    def check_open(self) -> None:
        """Raise ServerError where a bound port must not be: everybody would be let in."""
        if self._allows_anonymous:
            return
        for listener in self.all:
            if listener.is_for_all:
                raise ServerError(
                    f"the web front on {listener.listening} could be reached from other machines, and there are no "
                    "logins yet: listen on 127.0.0.1, or let everybody in by --set web.allow.anonymous=true"
                )
