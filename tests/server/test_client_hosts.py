"""The host of a client, by which access rules know it: IPv4 is IPv4, also at a door for IPv6."""

import asyncio
import http.client
from pathlib import Path

from exacta.config.options import configure
from exacta.config.security import STANDARD_AUTHORIZER
from exacta.core.commands import CreateAcls
from exacta.core.values.acl import ANYBODY, Acl, Operation, Pattern, ResourceKind
from exacta.front.doors import Door, Endpoint
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from exacta.server.event_loop import new_event_loop
from exacta.server.server import Server
from tests.kafka.wire import Wire

HERE = "127.0.0.1"
OPTIONS = {
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "allow.anonymous": "PLAINTEXT,WEB",
}


def test_a_rule_for_an_address_of_ipv4_holds_at_a_door_for_both_protocols(tmp_path: Path) -> None:
    loop = new_event_loop()
    doors = [
        Door(front="kafka", name="PLAINTEXT", endpoint=Endpoint("::", 0)),
        Door(front="pulsar", name="PULSAR", endpoint=Endpoint(HERE, 0)),
        Door(front="web", name="WEB", endpoint=Endpoint("::", 0)),
    ]
    server = Server(loop, configure(OPTIONS), tmp_path / "data", doors)
    try:
        server.open()
        loop.run_until_complete(server.start())
        rules = [
            Acl(kind, name, Pattern.LITERAL, ANYBODY, HERE, Operation.ALL, allows=True)
            for kind, name in ((ResourceKind.TOPIC, "*"), (ResourceKind.CLUSTER, "kafka-cluster"))
        ]
        server._engine.submit([CreateAcls(acls=tuple(rules))], lambda answers: None)  # type: ignore[union-attr]
        kafka, _, web = (each.endpoint.port for each in server.reception.doors)
        assert loop.run_until_complete(asyncio.to_thread(_create, kafka)) == ErrorCode.NONE
        assert loop.run_until_complete(asyncio.to_thread(_put, web)) == 204
        loop.run_until_complete(server.stop())
    finally:
        server.abandon()
        loop.close()


def _create(port: int) -> ErrorCode:
    wire = Wire((HERE, port))
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    [result] = wire.ask(CreateTopicsRequest(topics=[topic], timeout_ms=1_000), 5).topics
    wire.socket.close()
    return ErrorCode(result.error_code)


def _put(port: int) -> int:
    connection = http.client.HTTPConnection(HERE, port, timeout=10)
    connection.request("PUT", "/admin/v2/persistent/public/default/u")
    status = connection.getresponse().status
    connection.close()
    return status
