"""Tell a service manager the state of the server: the protocol of sd_notify(3), for units of `Type=notify`.

One datagram goes to the socket that the environment names. It is so little that a library would be more to look after.
"""

import logging
import os
import socket

logger = logging.getLogger("exacta.server")

READY = "READY=1"
STOPPING = "STOPPING=1"


def notify(state: str) -> None:
    """Tell the service manager, if there is one; a server goes on whether or not it is heard."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):  # Linux's abstract names begin with a zero byte
        address = "\0" + address[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.connect(address)
            sock.sendall(state.encode())
    except OSError as error:
        logger.warning("the service manager could not be told %s: %s", state, error.strerror or error)
