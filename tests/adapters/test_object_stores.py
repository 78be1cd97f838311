"""What a store does to `ObstoreObjects`: it is busy, silent or strict, and its lines hold secrets."""

import pickle
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from exacta.adapters.objects import ObstoreObjects, obstore_store, read_credentials
from exacta.ports.shared import Missing, StoreFailed
from exacta.store_addresses import objects_address


class _Store(BaseHTTPRequestHandler):
    """Answer as the test says, one status after the other, the last one again and again; 0: not at all."""

    statuses: tuple[int, ...] = ()
    seen: list[str]
    silence: threading.Event

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.seen.append(f"{self.command} {self.path}")
        status = self.statuses[min(len(self.seen), len(self.statuses)) - 1]
        if not status:
            self.silence.wait(60)
            return
        self.send_response(status)
        self.send_header("ETag", '"1"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _answer

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def a_store(tmp_path: Path, *statuses: int) -> Iterator[tuple[ObstoreObjects, list[str]]]:
    seen: list[str] = []
    silence = threading.Event()
    handler = type("Store", (_Store,), {"statuses": statuses, "seen": seen, "silence": silence})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        keys = tmp_path / "keys"
        keys.write_text("AWS_ACCESS_KEY_ID=exacta\nAWS_SECRET_ACCESS_KEY=hush\n")
        url = f"s3://bucket/logs?endpoint=http://127.0.0.1:{server.server_port}&region=us-east-1"
        yield ObstoreObjects(objects_address(url), keys), seen
        silence.set()
        server.shutdown()


def test_busy_store_is_asked_again(tmp_path: Path):
    with a_store(tmp_path, 503, 503, 200) as (store, seen):
        store.put("key", [b"data"])
    assert seen == ["PUT /bucket/logs/key"] * 3


def test_store_that_refuses_is_not_asked_again_and_its_secret_not_told(tmp_path: Path):
    with a_store(tmp_path, 403) as (store, seen):
        for call in (lambda: store.put("key", [b"data"]), lambda: store.get("key")):
            with pytest.raises(StoreFailed) as failed:
                call()
            assert "\n" not in str(failed.value)
            assert "hush" not in str(failed.value)
            assert not isinstance(failed.value, Missing)
    assert seen == ["PUT /bucket/logs/key", "GET /bucket/logs/key"]


def test_silent_store_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(obstore_store, "REQUEST_TIMEOUT", timedelta(seconds=0.2))
    monkeypatch.setitem(obstore_store.RETRIES, "max_retries", 1)
    with a_store(tmp_path, 0) as (store, seen):
        with pytest.raises(StoreFailed):
            store.get("key")
        with pytest.raises(StoreFailed):
            store.put("key", [b"data"])
    assert {*seen} == {"GET /bucket/logs/key", "PUT /bucket/logs/key"}


def test_object_is_put_by_one_request(tmp_path: Path):
    with a_store(tmp_path, 200) as (store, seen):
        store.put("key", [bytes(1 << 20)] * 20)
    assert seen == ["PUT /bucket/logs/key"]


def test_query_of_an_address_is_not_told():
    error = ValueError("GET https://a.blob.example/c/key?sig=hush&se=1 failed\nDebug source: hush")
    assert obstore_store.reason_of(error) == "GET https://a.blob.example/c/key failed"


def test_endpoint_of_the_environment_without_tls_is_refused_with_the_way_to_name_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setitem(obstore_store.RETRIES, "max_retries", 0)
    with pytest.raises(StoreFailed, match="without TLS only a store on this machine"):
        obstore_store.ObstoreObjects(objects_address("s3://bucket/log")).get("key")


def test_file_of_keys_that_is_none_is_refused_without_its_content(tmp_path: Path):
    path = tmp_path / "keys"
    path.write_text("# keys\n\nAWS_ACCESS_KEY_ID=a=b\n")
    assert read_credentials(path) == {"aws_access_key_id": "a=b"}
    path.write_text("hush\n")
    with pytest.raises(StoreFailed, match=r"^.*keys: line 1 is not of the form NAME=VALUE$"):
        ObstoreObjects(objects_address("s3://bucket"), path)
    path.write_text("NO_SUCH_KEY=hush\n")
    with pytest.raises(StoreFailed) as failed:
        ObstoreObjects(objects_address("s3://bucket"), path)
    assert "hush" not in str(failed.value)


@pytest.mark.parametrize(
    ("url", "keys"),
    [
        ("gs://bucket/logs", ""),
        ("az://container/logs?account=exacta", ""),
        ("az://container", "AZURE_STORAGE_ACCOUNT_NAME=exacta\nAZURE_STORAGE_ACCOUNT_KEY=aHVzaA==\n"),
        ("s3://bucket/logs", ""),
    ],
)
def test_stores_of_each_vendor_are_made_and_pickled(tmp_path: Path, url: str, keys: str):
    (tmp_path / "keys").write_text(keys)
    store = pickle.loads(pickle.dumps(ObstoreObjects(objects_address(url), tmp_path / "keys")))
    assert isinstance(store, ObstoreObjects)
    store.close()


@pytest.mark.parametrize(
    ("url", "keys", "told"),
    [
        ("az://container", "", "Account must be specified"),
        ("gs://bucket", "GOOGLE_SERVICE_ACCOUNT=/no/such/file\n", "Unable to open service account file"),
    ],
)
def test_store_that_cannot_be_made_is_told_in_one_line(tmp_path: Path, url: str, keys: str, told: str):
    (tmp_path / "keys").write_text(keys)
    with pytest.raises(StoreFailed, match=rf"^[^\n]*{told}[^\n]*$"):
        ObstoreObjects(objects_address(url), tmp_path / "keys")
