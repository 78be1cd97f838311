"""The founding of a cluster: its id and the secret of its logins are one for all brokers, and no part of the log.

A broker alone keeps both in files of its data directory. Here the first broker draws them, and the ledger keeps them.
From the secret follow the salts that users are shown who do not exist (else two brokers would show two, and tell that
there is no such user), and the token that makes the first user: a client may ask any broker, and the leader makes it.
"""

import base64
import hashlib
import hmac
import secrets
import uuid
from typing import Final

import msgspec
from msgspec import Struct

from exacta.server.errors import ServerError
from exacta.store_addresses import objects_address

_SECRET_BYTES: Final = 32
LEVEL: Final = 0
"""The newest level of a cluster's log that this version reads and writes. What older versions cannot read raises it."""


class Founded(Struct, frozen=True, kw_only=True):
    """The founding record of a cluster. Fields are only added, with defaults."""

    cluster_id: str
    secret: bytes
    level: int = 0
    """The level of what is in the log: versions that know it read the log."""
    logins: bytes | None = None
    """The secret of the logins of a broker that was alone, whose log was copied here."""
    copied_from: str | None = None
    """The directory from which a log is being copied: until that has ended, there is none here."""
    moved_to: str | None = None
    """The directory to which the log has gone."""
    copy: str = ""
    """The name of the copy that has made either of these."""
    objects: str | None = None
    """The place of the objects; empty: in the database. None: the founder was of an earlier version, and told none."""

    def __repr__(self) -> str:
        """Show no secret."""
        return f"Founded({self.cluster_id})"

    @property
    def login_secret(self) -> bytes:
        """The secret from which unknown users get their salts."""
        return self._derived(b"logins") if self.logins is None else self.logins

    @property
    def first_user_token(self) -> str:
        """The text of the token that makes the first user, at every broker."""
        return base64.urlsafe_b64encode(self._derived(b"first user")).rstrip(b"=").decode()

    def record(self) -> bytes:
        """Return the bytes that a ledger keeps."""
        return msgspec.json.encode(self)

    def require_log(self) -> None:
        """Raise ServerError if the log of this cluster is not here."""
        if self.moved_to is not None:
            raise ServerError(
                f"the log of this cluster has gone to the directory {self.moved_to}: start a broker there"
            )
        if self.copied_from is not None:
            raise ServerError(
                f"the copy of the log from {self.copied_from} has not ended: the same `exacta log copy` again ends it"
            )

    def _derived(self, purpose: bytes) -> bytes:
        return hmac.digest(self.secret, purpose, hashlib.sha256)


def draw(objects: str = "") -> bytes:
    """Return a record for a new cluster; `objects` is the option."""
    cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
    return Founded(cluster_id=cluster_id, secret=draw_secret(), objects=place_of(objects)).record()


def draw_secret() -> bytes:
    """Return a new secret of a cluster."""
    return secrets.token_bytes(_SECRET_BYTES)


def read(record: bytes) -> Founded:
    """Read a record. Raises ServerError, also where the log has a level that this version does not know."""
    try:
        founded = msgspec.json.decode(record, type=Founded)
    except msgspec.DecodeError as error:
        raise ServerError(f"the database holds a cluster that this version cannot read: {error}") from error
    if founded.level > LEVEL:
        raise ServerError(
            f"the log of this cluster has level {founded.level}, and this version of Exacta knows levels up to "
            f"{LEVEL}: use the version that the other brokers have, or a later one"
        )
    return founded


def require_objects(founded: Founded, objects: str) -> None:
    """Refuse another place of the objects than the cluster's, where others would not find them. Raises ServerError."""
    if founded.objects not in (None, place_of(objects)):
        told = f"--objects {founded.objects}" if founded.objects else "no --objects, since they lie in PostgreSQL"
        raise ServerError(f"the objects of this cluster lie elsewhere: each of its brokers needs {told}")


def place_of(objects: str) -> str:
    """Return the store, the bucket and the prefix; how a broker reaches them is its own affair."""
    if not objects:
        return ""
    address = objects_address(objects)
    return f"{address.scheme}://{address.bucket}/{address.prefix}".rstrip("/")
