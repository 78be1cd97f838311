"""The object store by obstore, a Rust library for S3, Google's and Azure's stores.

Theory of operation: an object is put by one request, never in parts, so that it is there whole or not at all. obstore
repeats a request that failed, after a pause that grows; a put can be repeated, since a key is put with the same bytes
only. Nobody who waits for an acknowledgement waits for a store. Keys to the store come from the environment by the
names that each vendor's tools use (`AWS_ACCESS_KEY_ID`, `GOOGLE_APPLICATION_CREDENTIALS`, `AZURE_STORAGE_ACCOUNT_KEY`,
a role of the machine), or from a file with lines of the form NAME=VALUE.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import obstore
from obstore.exceptions import BaseError
from obstore.store import AzureStore, GCSStore, S3Store

from exacta.ports.journal import Buffer
from exacta.ports.shared.objects import Missing, StoreFailed
from exacta.store_addresses import ObjectsAddress

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig

    Store = S3Store | GCSStore | AzureStore

CONNECT_TIMEOUT = timedelta(seconds=3)
IDLE_TIMEOUT = timedelta(seconds=10)
"""A request ends when nothing arrives for so long."""
REQUEST_TIMEOUT = timedelta(seconds=120)
"""A request ends after so long: 64 MiB need half a megabyte a second."""
RETRIES: "RetryConfig" = {
    "max_retries": 5,
    "retry_timeout": timedelta(seconds=30),
    "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=5), "base": 2},
}
_ENDLESS = 1 << 40
_QUERY = re.compile(r"\?\S*")
_LONGEST_REASON = 300


class ObstoreObjects:
    """Implement `exacta.ports.shared.ObjectStore`."""

    def __init__(self, address: ObjectsAddress, credentials: Path | None = None) -> None:
        """`credentials` is a file with keys to the store. Raises StoreFailed where what is given makes no store."""
        self._address = address
        self._credentials = credentials
        try:
            self._store = _open(address, read_credentials(credentials) if credentials is not None else {})
        except (BaseError, ValueError, OSError) as error:
            raise StoreFailed(reason_of(error)) from error

    def __reduce__(self) -> tuple[type["ObstoreObjects"], tuple[ObjectsAddress, Path | None]]:
        return ObstoreObjects, (self._address, self._credentials)

    def put(self, key: str, data: Sequence[Buffer]) -> None:
        """See `ObjectStore.put`."""
        try:
            obstore.put(self._store, key, b"".join(data), use_multipart=False)
        except (BaseError, OSError) as error:
            raise StoreFailed(reason_of(error)) from error

    def get(self, key: str, start: int = 0, size: int | None = None) -> bytes:
        """See `ObjectStore.get`."""
        try:
            return self._get(key, start, size)
        except FileNotFoundError as error:
            raise Missing(f"there is no object {key}") from error
        except (BaseError, OSError) as error:
            raise StoreFailed(reason_of(error)) from error

    def _get(self, key: str, start: int, size: int | None) -> bytes:
        if size is None and not start:
            return bytes(obstore.get(self._store, key).bytes())
        length = _ENDLESS if size is None else size
        try:
            if length:
                return bytes(obstore.get_range(self._store, key, start=start, length=length))
        except BaseError:
            # A range that begins behind the end is an error to the stores, and each has its own.
            if start < obstore.head(self._store, key)["size"]:
                raise
        else:
            obstore.head(self._store, key)
        return b""

    def delete(self, keys: Iterable[str]) -> None:
        """See `ObjectStore.delete`."""
        to_delete = list(keys)
        try:
            if to_delete:
                obstore.delete(self._store, to_delete)
        except FileNotFoundError:
            for key in to_delete:
                self._delete(key)
        except (BaseError, OSError) as error:
            raise StoreFailed(reason_of(error)) from error

    def _delete(self, key: str) -> None:
        """Delete one object: of several, some stores delete only as far as the first one that is missing."""
        try:
            obstore.delete(self._store, key)
        except FileNotFoundError:
            pass
        except (BaseError, OSError) as error:
            raise StoreFailed(reason_of(error)) from error

    def close(self) -> None:
        """See `ObjectStore.close`. The connections go with the store."""


def _open(address: ObjectsAddress, keys: Mapping[str, str]) -> "Store":
    endpoint = address.parameters.get("endpoint")
    client: ClientConfig = {
        "connect_timeout": CONNECT_TIMEOUT,
        "read_timeout": IDLE_TIMEOUT,
        "timeout": REQUEST_TIMEOUT,
        "allow_http": endpoint is not None and endpoint.startswith("http://"),
    }
    shared: dict[str, Any] = {"prefix": address.prefix or None, "client_options": client, "retry_config": RETRIES}
    config: dict[str, Any] = dict(keys)
    if endpoint is not None:
        config["endpoint"] = endpoint
    if address.scheme == "gs":
        return GCSStore(address.bucket, config=config, **shared)  # type: ignore[arg-type]
    if address.scheme == "az":
        if "account" in address.parameters:
            config["account_name"] = address.parameters["account"]
        return AzureStore(address.bucket, config=config, **shared)  # type: ignore[arg-type]
    if "region" in address.parameters:
        config["region"] = address.parameters["region"]
    return S3Store(address.bucket, config=config, **shared)  # type: ignore[arg-type]


def read_credentials(path: Path) -> Mapping[str, str]:
    """Return the settings of a file with lines of the form NAME=VALUE. Raises ValueError, without what it has read."""
    found = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            name, equals, value = line.partition("=")
            if not equals:
                raise ValueError(f"{path}: line {number} is not of the form NAME=VALUE")
            found[name.strip().lower()] = value.strip()
    return found


def reason_of(error: BaseException) -> str:
    """Return the first line of an error, without the query of an URL: Azure's may hold a signature."""
    lines = str(error).strip().splitlines()
    if not lines:
        return type(error).__name__
    reason = _QUERY.sub("", lines[0])[:_LONGEST_REASON]
    if " http://" in reason and "builder error" in reason:
        return f"{reason}: without TLS only a store on this machine is reached, by --objects …?endpoint=http://…"
    return reason
