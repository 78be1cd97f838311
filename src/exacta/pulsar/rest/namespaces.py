"""Namespaces: their topics are listed, and the rest is courtesy.

A namespace is a part of the names of topics (decision 0032), and nothing is kept of it. A client that creates one is
told that it is there, and policies that hold anyway may come with it. Other policies are refused, since nobody would
keep them.
"""

from collections.abc import Callable
from typing import Final

from msgspec import json

from exacta.core.state.state import State
from exacta.front.broker import Broker
from exacta.front.untrusted_json import NoJson, decode_json
from exacta.pulsar.namespace_topics import topics_of
from exacta.pulsar.rest.request import CONFLICT, NOT_ACCEPTABLE, NOT_IMPLEMENTED, RestRequest
from exacta.web.answers import json_answer

_POLICIES: json.Decoder[dict[str, object] | None] = json.Decoder(dict[str, object] | None)

HOLD_ANYWAY: Final = frozenset({"auth_policies", "replication_clusters"})
"""Everybody may do everything until there are logins, and there is one cluster."""

CLUSTER: Final = "standalone"
"""The name of the one cluster, which Apache Pulsar gives to a single broker; tools wait for it by its name."""

MOST_LIST_BYTES: Final = 1 << 20
"""The most that one list may take: 256 connections whose clients do not take theirs hold 256 MiB."""


def topics(broker: Broker, request: RestRequest) -> None:
    """List the topics of a namespace; one without topics is empty, and one that nobody has named as well."""
    is_persistent = request.http.query_params.get("mode", "").upper() != "NON_PERSISTENT"

    _read(broker, request, lambda names: answer_list(request, names if is_persistent else []))


def answer_list(request: RestRequest, names: list[str]) -> None:
    """Answer with a list of names, unless it is too long."""
    response = json_answer(200, names)
    if len(response.body) > MOST_LIST_BYTES:
        text = f"{len(names)} names are too many for one answer: ask for topics by Pulsar's protocol"
        request.refuse_with(NOT_ACCEPTABLE, text)
    else:
        request.reply(response)


def policies(broker: Broker, request: RestRequest) -> None:
    """Tell the policies that hold in every namespace."""
    request.reply_json({"replication_clusters": [CLUSTER], "deduplicationEnabled": True})


def deduplication(broker: Broker, request: RestRequest) -> None:
    """Say that repeats of producers with names are dropped, in every namespace and topic."""
    request.reply_json(True)


def create(broker: Broker, request: RestRequest) -> None:
    """Say that a namespace is there now, unless topics lie in it already."""
    try:
        policies = decode_json(request.body or b"{}", _POLICIES) or {}
    except NoJson as error:
        request.refuse_with(400, f"the body must be the policies of a namespace: {error}")
        return
    others = sorted(name for name, value in policies.items() if value and name not in HOLD_ANYWAY)
    if others:
        request.refuse_with(NOT_IMPLEMENTED, f"namespaces have no policies: {', '.join(others)}")
        return
    _answer_if_empty(broker, request, "Namespace already exists")


def delete(broker: Broker, request: RestRequest) -> None:
    """Say that a namespace is gone, unless topics lie in it."""
    _answer_if_empty(broker, request, "Cannot delete non empty namespace")


def _answer_if_empty(broker: Broker, request: RestRequest, refusal: str) -> None:
    """Answer with nothing, or refuse the request if topics lie in the namespace."""

    def answer(names: list[str]) -> None:
        if names:
            request.refuse_with(CONFLICT, refusal)
        else:
            request.reply_nothing()

    _read(broker, request, answer)


def _read(broker: Broker, request: RestRequest, answer: Callable[[list[str]], None]) -> None:
    names = request.http.path_params

    def view(state: State, now_ms: int) -> list[str]:
        return topics_of(broker, request, state, state.topics, names["tenant"], names["namespace"])

    broker.read(request, view, answer)
