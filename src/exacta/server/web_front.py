"""The web front as the server puts it together: health and metrics at once, and later what Pulsar's clients ask.

Imported only where an operator has asked for it: it loads a web server and prometheus-client.
"""

import asyncio
from collections.abc import Callable, Iterable

from exacta.config.configuration import Configuration
from exacta.metrics import exposition
from exacta.metrics.sources import Sources
from exacta.server.progress import Progress
from exacta.web import health
from exacta.web.application import Application
from exacta.web.connection import WebConnection
from exacta.web.server import WebServer


class WebFront:
    """Makes the connection of each client; `serve` takes the routes of what is asked of the broker."""

    def __init__(
        self,
        configuration: Configuration,
        loop: asyncio.AbstractEventLoop,
        register: Callable[[WebConnection], bool],
        forget: Callable[[WebConnection], None],
        *,
        sources: Sources,
        progress: Progress,
        names: Iterable[str],
    ) -> None:
        """`names` are what clients call this server."""
        application = Application([*health.routes(progress), *exposition.routes(sources)])
        server = WebServer(configuration, loop, register, forget, names=names)
        server.serve(application)
        self.serve = application.serve
        self.connection: Callable[[], asyncio.BaseProtocol] = server.connection
