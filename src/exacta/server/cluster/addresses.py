"""The addresses by which the other brokers of a cluster send clients to this one."""

from collections.abc import Mapping, Sequence

from exacta.front.doors import WILDCARDS, Door
from exacta.server.errors import ServerError


def addresses_of(doors: Sequence[Door]) -> Mapping[str, tuple[str, int]]:
    """Return host and port of each door, by its name. Raises ServerError where no other broker could tell one.

    A door that listens on all addresses has no host that would do for every client. A broker alone tells each client
    the address that it has come to; another broker does not know it. The web's doors have the host of the others.
    """
    told = {each.name: each.told for each in doors}
    hosts = [each.told.host for each in doors if each.told.host not in WILDCARDS]
    for door in doors:
        if door.told.host in WILDCARDS and (door.front != "web" or not hosts):
            raise ServerError(
                f"the door {door.name} listens on every address, and other brokers must tell clients one: name it by "
                "--advertise, or by --pulsar-advertise, --pulsar-tls-advertise, advertised.listeners"
            )
    return {
        name: (hosts[0] if endpoint.host in WILDCARDS else endpoint.host, endpoint.port)
        for name, endpoint in told.items()
    }
