"""All that is listened on for HTTP: metrics and health for operators, and questions of Apache Pulsar's clients.

It loads no web server before one is asked for (`web_front.py` does).
"""

from exacta.config.configuration import Configuration
from exacta.server.errors import ServerError
from exacta.server.listeners import Doors, Listener, ListenerPair
from exacta.server.requirement import require
from exacta.server.tls import Certificate, TlsListener


class WebListeners(ListenerPair):
    """The listeners of the web front."""

    def __init__(self, doors: Doors, configuration: Configuration, certificate: Certificate) -> None:
        listen, listen_tls = doors.web_listen, doors.web_tls_listen
        super().__init__(
            "web",
            None if listen is None else Listener(listen),
            None if listen_tls is None else TlsListener(listen_tls, certificate=certificate),
        )
        self._allows_anonymous = configuration.web_allow_anonymous

    def check(self) -> None:
        """Raise ServerError where something is missing, before a port is bound."""
        if self.all:
            for module in ("starlette", "uvicorn", "prometheus_client"):
                require(module, f"the web front needs {module.replace('_', '-')}", extra="web")

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
