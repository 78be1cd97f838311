"""TLS and passwords: a broker knows its PostgreSQL by its certificate, and tells no password."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import trustme

from exacta.adapters.postgres import Doubt, PostgresObjects
from exacta.ports.shared import StoreFailed
from exacta.store_addresses import postgres_address
from tests.adapters.ledger_benches import wait
from tests.adapters.postgres_bench import PostgresBench, postgres_bench
from tests.databases.postgresql import PostgresServer, a_server, binaries

PASSWORD = "hush-hush"


@pytest.fixture(scope="module")
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def server(port: int, authority: trustme.CA) -> Iterator[PostgresServer]:
    """A server that asks for TLS and a password wherever one comes by network."""
    if binaries() is None:
        pytest.skip("there is no PostgreSQL: name one by EXACTA_TEST_POSTGRES")
    with a_server(in_memory=True, fsync="on", listen_addresses="127.0.0.1", port=str(port)) as server:
        data = server.folder / "data"
        made = authority.issue_cert("127.0.0.1", "localhost")
        _write(data / "server.key", made.private_key_pem.bytes(), data)
        _write(data / "server.crt", b"".join(each.bytes() for each in made.cert_chain_pems), data)
        rules = "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n"
        _write(data / "pg_hba.conf", rules.encode(), data)
        with psycopg.connect(server.conninfo, autocommit=True) as connection:
            connection.execute("alter system set ssl = 'on'")
            connection.execute("select pg_reload_conf()")
            connection.execute(f"create role exacta login password '{PASSWORD}'".encode())
            connection.execute("create database logs owner exacta")
        yield server


def _write(path: Path, data: bytes, like: Path) -> None:
    path.write_bytes(data)
    path.chmod(0o600)
    os.chown(path, like.stat().st_uid, like.stat().st_gid)


@pytest.fixture
def bench(server: PostgresServer) -> Iterator[PostgresBench]:
    with postgres_bench(30.0) as bench:
        yield bench


@pytest.fixture
def secrets(tmp_path: Path, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files that the environment names: the certificate of the authority, and a password."""
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    (tmp_path / "passwords").write_text(f"*:*:*:exacta:{PASSWORD}\n")
    (tmp_path / "passwords").chmod(0o600)
    monkeypatch.delenv("PGPASSWORD", raising=False)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "passwords"))
    monkeypatch.setenv("PGSSLROOTCERT", str(tmp_path / "ca.pem"))
    return tmp_path


def test_password_is_in_a_file_and_the_server_is_known_by_its_certificate(
    bench: PostgresBench, secrets: Path, port: int
):
    address = postgres_address(f"postgresql://exacta@127.0.0.1:{port}/logs?sslmode=verify-full")
    ledger = bench.open_at(address)
    assert wait(bench, ledger.read_head).epoch == 0
    store = PostgresObjects(address, bench.schema)
    store.put("key", [b"data"])
    assert store.get("key") == b"data"
    store.close()


def test_wrong_password_is_told_without_it(
    bench: PostgresBench, secrets: Path, port: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PGPASSWORD", "hush")
    address = postgres_address(f"postgresql://exacta@127.0.0.1:{port}/logs?sslmode=verify-full")
    told = rf"^no PostgreSQL is reached \(127.0.0.1:{port}: password authentication failed for user \"exacta\"\)$"
    with pytest.raises(Doubt, match=told):
        bench.open_at(address)
    store = PostgresObjects(address, bench.schema)
    with pytest.raises(StoreFailed, match=told):
        store.get("key")
    store.close()
    assert "hush" not in repr(vars(store))


def test_server_that_another_authority_vouches_for_is_not_trusted(bench: PostgresBench, secrets: Path, port: int):
    trustme.CA().cert_pem.write_to_path(str(secrets / "ca.pem"))
    with pytest.raises(Doubt, match=r"certificate verify failed"):
        bench.open_at(postgres_address(f"postgresql://exacta@127.0.0.1:{port}/logs?sslmode=verify-full"))


def test_missing_certificate_of_the_authority_is_told(bench: PostgresBench, secrets: Path, port: int):
    (secrets / "ca.pem").unlink()
    with pytest.raises(Doubt, match=r"^no PostgreSQL is reached \(127.0.0.1:\d+: .*\)$"):
        bench.open_at(postgres_address(f"postgresql://exacta@127.0.0.1:{port}/logs?sslmode=verify-full"))
