"""TLS: the certificate's files, the handshakes, and Pulsar's own client over it."""

import asyncio
import logging
import socket
import ssl
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import trustme

import exacta
from exacta.cli.serve import run as serve
from exacta.config.options import configure
from exacta.front.doors import Door, Endpoint
from exacta.security.tls import TlsSettings, tls_settings
from exacta.server import tls
from exacta.server.errors import ServerError
from exacta.server.event_loop import new_event_loop
from exacta.server.tls import LOOK_SECONDS, Certificate, TlsListener
from tests.pulsar.wire import client

ANSWER_SECONDS = 10


class Files:
    """A keystore for localhost, and what trusts it."""

    def __init__(self, folder: Path) -> None:
        self.authority = trustme.CA()
        self.issued = self.authority.issue_cert("localhost", "127.0.0.1")
        self.certificate, self.key, self.keystore, self.trusted = (
            str(folder / name) for name in ("certificate.pem", "key.pem", "keystore.pem", "trusted.pem")
        )
        for blob in self.issued.cert_chain_pems:
            blob.write_to_path(self.certificate, append=True)
        self.issued.private_key_pem.write_to_path(self.key)
        self.issued.private_key_and_cert_chain_pem.write_to_path(self.keystore)
        self.authority.cert_pem.write_to_path(self.trusted)

    @property
    def pulsars(self) -> dict[str, Any]:
        return {"tlsCertificateFilePath": self.certificate, "tlsKeyFilePath": self.key}

    @property
    def settings(self) -> TlsSettings:
        return tls_settings(configure({"ssl.keystore.location": self.keystore}), "kafka")

    def client_context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.trusted)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("tls"))


# --- the files --------------------------------------------------------------------------------------------------------


def test_a_server_without_its_certificate_does_not_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, file = tmp_path / "data", tmp_path / "server.properties"
    listen = ["--listen", "127.0.0.1:0", "--pulsar-tls-listen", "127.0.0.1:0"]
    nowhere = "no such file or directory"
    for options, expected in (
        ([*listen, "--set", "tlsCertificateFilePath=/nowhere/c.pem", "--set", "tlsKeyFilePath=/nowhere/k.pem"],
         f"cannot read tlsCertificateFilePath and tlsKeyFilePath: /nowhere/k.pem: {nowhere}"),
        (listen, "the door PULSAR_TLS: TLS needs a private key and its certificate: set ssl.keystore.location to a "
         "file with both"),
        (["--config", str(file), "--set", "ssl.keystore.location=/nowhere/k.pem"],
         f"cannot read ssl.keystore.location: /nowhere/k.pem: {nowhere}"),
    ):  # fmt: skip
        file.write_text("listeners=SSL://127.0.0.1:0\nssl.keystore.location=/elsewhere\n")
        assert serve(["--data", str(data), *options]) == 1
        assert capsys.readouterr().err == f"exacta: {expected}\n"
        assert not data.exists()


def test_no_listener_with_tls_is_replaced_by_one_without(
    tmp_path: Path, files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "server.properties"
    file.write_text(f"listeners=SASL_SSL://127.0.0.1:0\nssl.keystore.location={files.keystore}\n")
    call = ["--data", str(tmp_path / "data"), "--config", str(file)]
    assert serve([*call, "--listen", "127.0.0.1:0"]) == 2
    assert capsys.readouterr().err == (
        "exacta: --listen would take the place of the listener SASL_SSL, and have no SASL_SSL: leave it out, or change "
        "listeners in the file\n"
    )


def presented(certificate: Certificate, files: Files, now_s: float) -> bool:
    """Return whether a client that trusts these files takes what is presented at a time."""
    ours, theirs = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = certificate.context(now_s).wrap_bio(ours, theirs, server_side=True)
    client = files.client_context().wrap_bio(theirs, ours, server_hostname="localhost")
    for _ in range(3):
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError:
                return False
    return client.version() is not None


def test_the_files_are_read_again_when_somebody_says_so(tmp_path: Path) -> None:
    files = Files(tmp_path)
    certificate = Certificate(files.settings)
    certificate.read(0)
    before = certificate.context(0)
    certificate.read_again(0)
    assert certificate.context(0) is not before
    Path(files.keystore).write_text("")
    kept = certificate.context(0)
    certificate.read_again(0)
    assert certificate.context(0) is kept


def test_files_that_change_are_read_again_and_what_is_of_no_use_is_not_taken(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    folders = [tmp_path / name for name in ("before", "after")]
    for folder in folders:
        folder.mkdir()
    before, after = map(Files, folders)
    certificate, now_s = Certificate(tls_settings(configure(before.pulsars), "pulsar")), 5.0
    certificate.read(now_s)
    Path(after.certificate).replace(before.certificate)
    now_s += LOOK_SECONDS / 2
    assert presented(certificate, before, now_s), "the files were looked at a moment ago"
    assert not caplog.records
    for _ in range(2):  # the key is not the new one yet, and the operator is told so once
        now_s += LOOK_SECONDS
        assert presented(certificate, before, now_s)
    [told] = caplog.messages
    assert told.startswith("the certificate of before is presented on: ")
    assert "key values mismatch" in told
    Path(after.key).replace(before.key)
    now_s += LOOK_SECONDS
    assert presented(certificate, after, now_s)
    assert not presented(certificate, before, now_s)
    Path(before.key).unlink()
    now_s += LOOK_SECONDS
    assert presented(certificate, after, now_s)
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO", "WARNING"]


# --- the listener -----------------------------------------------------------------------------------------------------


class Echo(asyncio.Protocol):
    """Sends back what comes."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self._transport.write(data)


def listening(files: Files, scenario: Callable[[TlsListener, int], Any]) -> None:
    """Run a scenario with a listener and its port."""

    async def run() -> None:
        certificate = Certificate(files.settings)
        certificate.read(time.monotonic())
        listener = TlsListener(Door(front="pulsar", name="TLS", endpoint=Endpoint("127.0.0.1", 0)), certificate)
        listener.open()
        listener.connect = Echo
        await listener.start()
        try:
            await asyncio.wait_for(scenario(listener, listener.door.endpoint.port), ANSWER_SECONDS)
        finally:
            listener.close()

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(run())


async def echoes(files: Files, port: int) -> bool:
    context = files.client_context()
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="localhost")
    writer.write(b"echo")
    echoed = await reader.readexactly(4)
    writer.close()
    return echoed == b"echo"


def test_who_says_nothing_keeps_nobody_out(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls, "MOST_HANDSHAKES", 4)

    async def scenario(listener: TlsListener, port: int) -> None:
        other = socket.create_connection(("127.0.0.1", port), source_address=("127.0.0.2", 0))
        silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
        assert await echoes(files, port)
        assert len(listener._handshakes) <= 4
        assert "127.0.0.2" in listener._handshakes.values(), "it is the oldest, and not of the host that has most"
        other.setblocking(False)
        with pytest.raises(BlockingIOError):
            other.recv(1)
        assert [each.recv(1) for each in silent[:16]] == [b""] * 16, "they are closed, and hold no file"
        for each in (other, *silent):
            each.close()

    listening(files, scenario)


def test_a_handshake_takes_a_bounded_time(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls, "HANDSHAKE_SECONDS", 0.2)

    async def scenario(listener: TlsListener, port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await reader.read() == b""
        writer.close()

    listening(files, scenario)


def test_who_speaks_no_tls_is_told_in_the_log_and_others_go_on(files: Files, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "exacta.server")

    async def scenario(listener: TlsListener, port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        await reader.read()
        writer.close()
        assert await echoes(files, port)

    listening(files, scenario)
    [record] = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage().startswith("no TLS with 127.0.0.1:")
    assert record.getMessage().endswith(
        " at the door TLS: it does not speak TLS, and this door speaks nothing else (Kafka clients: "
        "security.protocol=SSL)"
    )


def test_closing_ends_handshakes_and_frees_the_port(files: Files) -> None:
    async def scenario(listener: TlsListener, port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while not listener._handshakes:
            await asyncio.sleep(0)
        listener.close()
        assert await reader.read() == b""
        writer.close()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)

    listening(files, scenario)


# --- a broker ---------------------------------------------------------------------------------------------------------


def test_pulsars_own_client_produces_and_consumes_by_tls_also_after_a_restart(files: Files) -> None:
    with exacta.Broker(pulsar=True, **files.pulsars) as broker:
        url = broker.pulsar_tls_url
        for value in (b"x" * 3_000_000, b"after the restart"):
            with client(url, tls_trust_certs_file_path=files.trusted, tls_validate_hostname=True) as opened:
                consumer = opened.subscribe("t", "s")
                opened.create_producer("t").send(value)
                message = consumer.receive(20_000)
                assert message.data() == value
                consumer.acknowledge(message)
            broker.restart()
            assert broker.pulsar_tls_url == url


def test_a_client_that_does_not_trust_the_certificate_gets_nothing(files: Files) -> None:
    with exacta.Broker(pulsar=True, **files.pulsars) as broker:
        _, _, port = broker.pulsar_tls_url.rpartition(":")
        strict = ssl.create_default_context()
        with socket.create_connection(("127.0.0.1", int(port))) as plain, pytest.raises(ssl.SSLCertVerificationError):
            strict.wrap_socket(plain, server_hostname="localhost")


def test_a_broker_without_tls_says_how_to_have_it() -> None:
    with exacta.Broker(pulsar=True) as broker, pytest.raises(ServerError, match="tls=True"):
        _ = broker.pulsar_tls_url


def test_a_stop_ends_the_connections_of_all_listeners(files: Files) -> None:
    broker = exacta.Broker(pulsar=True, **files.pulsars).start()
    try:
        sockets = []
        for url in (broker.pulsar_url, broker.pulsar_tls_url, broker.web_url, broker.web_tls_url):
            opened = socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=ANSWER_SECONDS)
            if url in (broker.pulsar_tls_url, broker.web_tls_url):
                opened = files.client_context().wrap_socket(opened, server_hostname="localhost")
            sockets.append(opened)
        with ThreadPoolExecutor(1) as thread:
            stopping = thread.submit(broker.stop)
            for each in sockets:
                assert each.recv(1) == b""
                each.close()
            stopping.result()
        broker.restart(clean=False)
    finally:
        broker.close()
