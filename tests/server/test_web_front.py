"""The web front while the server begins: it answers before the journal has been read, and says how far that is."""

import asyncio
import json
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

import exacta
from exacta.config.options import configure
from exacta.config.security import STANDARD_AUTHORIZER
from exacta.engine import recovery
from exacta.front.doors import Endpoint
from exacta.server import server as server_module
from exacta.server.door_options import doors_of
from exacta.server.errors import ServerError
from exacta.server.server import Server

ANY_PORT = Endpoint("127.0.0.1", 0)


def ask(url: str) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


async def answer(server: Server, path: str) -> tuple[int, Any]:
    [web] = (each for each in server.reception.doors if each.front == "web")
    return await asyncio.to_thread(ask, f"http://{web.endpoint}{path}")


def test_it_says_how_far_recovery_is_and_serves_the_rest_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on, reads, recover = threading.Event(), threading.Event(), recovery.recover

    def waiting(*args: Any) -> Any:
        reads.set()
        assert goes_on.wait(30)
        return recover(*args)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        server = Server(
            loop,
            configure({}),
            tmp_path,
            doors_of({"listen": ANY_PORT, "web_listen": ANY_PORT, "pulsar_listen": ANY_PORT}),
        )
        opening = asyncio.ensure_future(server.open_in_sight())
        await asyncio.to_thread(reads.wait, 30)
        assert (await answer(server, "/health/live"))[0] == 200
        status, found = await answer(server, "/health/ready")
        said = json.loads(found)
        assert (status, said["status"], said["doing"]) == (503, "recovering", "reading the journal")
        assert said["bytes_read"] == said["bytes_to_read"] == 0
        status, metrics = await answer(server, "/metrics")
        assert (status, "exacta_ready 0.0" in metrics) == (200, True)
        assert (await answer(server, "/status.html"))[0] == 503
        goes_on.set()
        await opening
        await server.start()
        assert (await answer(server, "/health/ready"))[0] == 200
        assert await answer(server, "/status.html") == (200, "ok")
        assert (await answer(server, "/no-such-path"))[0] == 404
        assert "exacta_ready 1.0" in (await answer(server, "/metrics"))[1]
        await server.stop()

    monkeypatch.setattr(server_module, "recover", waiting)
    asyncio.run(main())


def test_it_says_how_many_bytes_of_the_journal_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with exacta.Broker(data=tmp_path / "data") as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce("orders", b"x" * 1_000)
        assert producer.flush(20) == 0
        broker.kill()
    goes_on, has_read, recover = threading.Event(), threading.Event(), recovery.recover

    def waiting(*args: Any) -> Any:
        recovered = recover(*args)
        has_read.set()
        assert goes_on.wait(30)
        return recovered

    async def main() -> None:
        doors = doors_of({"listen": ANY_PORT, "web_listen": ANY_PORT})
        server = Server(asyncio.get_running_loop(), configure({}), tmp_path / "data", doors)
        opening = asyncio.ensure_future(server.open_in_sight())
        await asyncio.to_thread(has_read.wait, 30)
        said = json.loads((await answer(server, "/health/ready"))[1])
        assert said["bytes_read"] == said["bytes_to_read"] > 1_000
        goes_on.set()
        await opening
        server.abandon()

    monkeypatch.setattr(server_module, "recover", waiting)
    asyncio.run(main())


def test_a_journal_that_cannot_be_read_ends_the_front(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal" / "format").write_text("of another kind")

    async def main() -> None:
        server = Server(
            asyncio.get_running_loop(), configure({}), tmp_path, doors_of({"listen": ANY_PORT, "web_listen": ANY_PORT})
        )
        with pytest.raises(ServerError):
            await server.open_in_sight()
        with pytest.raises(urllib.error.URLError):
            await answer(server, "/health/live")

    asyncio.run(main())


LOGINS = {
    "authenticationEnabled": True,
    "authenticationProviders": "org.apache.pulsar.broker.authentication.AuthenticationProviderBasic",
}
RULES = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}


@pytest.mark.parametrize("options", [RULES, LOGINS, LOGINS | RULES], ids=["rules", "logins", "both"])
def test_while_the_journal_is_read_nobody_sees_details_where_somebody_must_be_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    goes_on, reads, recover = threading.Event(), threading.Event(), recovery.recover

    def waiting(*args: Any) -> Any:
        reads.set()
        assert goes_on.wait(30)
        return recover(*args)

    async def main() -> None:
        doors = doors_of({"listen": ANY_PORT, "web_listen": ANY_PORT})
        server = Server(asyncio.get_running_loop(), configure(options), tmp_path, doors)
        opening = asyncio.ensure_future(server.open_in_sight())
        await asyncio.to_thread(reads.wait, 30)
        assert (await answer(server, "/health/live"))[0] == 200
        assert await answer(server, "/health/ready") == (503, '{"status":"recovering"}')
        assert (await answer(server, "/metrics"))[0] == 503
        goes_on.set()
        await opening
        await server.start()
        assert ("disk" in (await answer(server, "/health/ready"))[1]) is (options is RULES)
        assert (await answer(server, "/metrics"))[0] == (200 if options is RULES else 401)
        await server.stop()

    monkeypatch.setattr(server_module, "recover", waiting)
    asyncio.run(main())
