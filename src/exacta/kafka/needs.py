"""The operations on resources that a request needs of its client: each handler declares them beside its key.

Owns the forms of a declaration; `access.py` asks the authorizer by them. The operations are those of Apache Kafka's own
handlers ("Operations and resources on protocols" in its documentation; KIP-11, KIP-277, KIP-664, KIP-848). A handler
declares a tuple of these, in the order in which they are asked:

- `Whole`: without it the whole request is refused.
- `Each`: the elements of one array are allowed or refused one by one. The handler gets a request without the refused
  ones, and its answer is completed by an error for each of them.
- `Shown`: the answer leaves out what the client may not see; requests that list need it.
- `Inside`: the handler asks itself, by `access.py`, since the resources are known to it only.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from msgspec import Struct

from exacta.ports.authorizer import CLUSTER, Operation, Resource, ResourceKind
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.schema import OPEN_END

REFUSALS = {
    ResourceKind.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceKind.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceKind.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceKind.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
"""The error code of a refusal, by the kind of the resource."""

Suffices: TypeAlias = tuple[tuple[Operation, Resource], ...]
"""The rights each of which is enough, whatever the declared one."""


def or_on_cluster(operation: Operation) -> Suffices:
    """Return that the right to do this on the cluster is enough."""
    return ((operation, CLUSTER),)


def the_cluster(request: Any) -> Iterable[str]:
    """Name the cluster, as the resource that every request of an API needs."""
    return (CLUSTER.name,)


def group_id(request: Any) -> Iterable[str]:
    """Name the group of a request."""
    return (request.group_id,)


def transactional_id(request: Any) -> Iterable[str]:
    """Name the transactional id of a request, if it has one."""
    return () if request.transactional_id is None else (request.transactional_id,)


class Whole(Struct, frozen=True):
    """The right on every resource that `names` finds in the request; no name, no need."""

    operation: Operation
    kind: ResourceKind
    names: Callable[[Any], Iterable[str]] = the_cluster
    instead: Suffices = ()
    since: int = 0
    """The first version of the API to which the need applies; `until` is the last one."""
    until: int = OPEN_END


class Each(Struct, frozen=True):
    """The right on each element of the request's array `elements`, whose answers lie in the response's `answers`.

    An element that names a topic by an id that no topic has is not asked about: the handler says that it is unknown.
    """

    operation: Operation
    kind: ResourceKind | Callable[[Any, Any], ResourceKind | None]
    """The kind, or a function that finds it in request and element. None: nothing is needed, the handler refuses it."""
    elements: str
    answers: str
    name: str = "name"
    """The element's field that names the resource, empty where the element is the name; ids lie in `topic_id`."""
    instead: Suffices = ()
    others: ErrorCode | None = None
    """The answer to all other elements where one is refused and nothing is done; None: each goes by itself. Of a topic
    that is not there the client is told so."""
    tells: Operation | None = None
    """The right that is enough to be told that a topic is not there, and which name a topic has that an id names."""
    asks_without: bool = False
    """True: the handler is asked even where no element is left, since it tells what is wrong with the whole."""
    since: int = 0
    until: int = OPEN_END


class Shown(Struct, frozen=True):
    """The right to see an entry of the answer's array at `path` (fields, with dots); other entries are left out."""

    operation: Operation
    kind: ResourceKind
    path: str
    name: str = "name"
    """The entry's field that names the resource; empty where the entry is the name."""
    instead: Suffices = ()
    since: int = 0
    until: int = OPEN_END


class Inside(Struct, frozen=True):
    """A right for which the handler asks in its own body."""

    operation: Operation
    kind: ResourceKind


Need: TypeAlias = Whole | Each | Shown | Inside
Needs: TypeAlias = tuple[Need, ...]

OPEN_TO_ALL: Needs = ()
"""The declaration of an API that everybody may use."""
