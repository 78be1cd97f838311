"""The broker's options for a log that several brokers share.

Such a log lies in PostgreSQL, and the greater part of it in an object store. A broker has no log of its own then: the
data directory is a cache.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

from msgspec import Meta

from exacta.config.errors import ConfigurationError
from exacta.store_addresses import problem_of_objects, problem_of_postgres


@dataclass(frozen=True, kw_only=True)
class ClusterOptions:
    """The options for a log that several brokers share, each with its default."""

    postgres: Annotated[
        str,
        Meta(
            description="URL of the PostgreSQL database that keeps the log, as postgresql://USER@HOST:PORT/DATABASE; "
            "several hosts stand with commas between them. Brokers with the same one are a cluster. A password has no "
            "place in it: PGPASSWORD or the file of PGPASSFILE gives it. Beyond this machine it is reached by TLS. "
            "Empty: the log lies in the data directory, and this broker is alone.",
        ),
    ] = ""
    postgres_schema: Annotated[
        str,
        Meta(
            pattern=r"[a-z_][a-z0-9_]{0,62}",
            description="Schema of that database in which the log lies: each cluster has its own.",
        ),
    ] = "exacta"
    objects: Annotated[
        str,
        Meta(
            description="Where the older part of the log lies, as s3://BUCKET/PREFIX; the environment says how the "
            "store is reached (AWS_ACCESS_KEY_ID and so on). Empty: in PostgreSQL too.",
        ),
    ] = ""
    objects_credentials_file: Annotated[
        str,
        Meta(
            description="File with the keys to the object store, in lines NAME=VALUE by the names of the environment. "
            "Empty: they come from the environment."
        ),
    ] = ""
    broker_rack: Annotated[
        str,
        Meta(description="Rack or zone of this broker: consumers with this client.rack read from it (KIP-392)."),
    ] = ""


ALWAYS_TRUE: Final = "transaction_sync_every_write"
"""An option that a shared log sets: another broker would know nothing of a write that only this one has."""


def settle(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return given values of options, by field, with what a shared log sets; a value that it cannot have is kept."""
    return {ALWAYS_TRUE: True, **values} if values.get("postgres") else dict(values)


def require_one_log(options: ClusterOptions, *, syncs_every_write: bool) -> None:
    """Check that the options are for one kind of log. Raises ConfigurationError."""
    if not options.postgres:
        of_clusters = ("objects", "postgres_schema", "objects_credentials_file")
        alone = [name for name in of_clusters if getattr(options, name) != getattr(_DEFAULTS, name)]
        if alone:
            raise ConfigurationError(
                f"{alone[0].replace('_', '.')} is for a log in PostgreSQL: name that by postgres too"
            )
        return
    if options.objects_credentials_file and not options.objects:
        raise ConfigurationError("objects.credentials.file has the keys to an object store: name that by objects too")
    if problem := problem_of_postgres(options.postgres) or (options.objects and problem_of_objects(options.objects)):
        raise ConfigurationError(problem)
    if not syncs_every_write:
        raise ConfigurationError(
            "transaction.sync.every.write=false is for a log in the data directory: over PostgreSQL every write is "
            "durable before it is acknowledged; leave it out"
        )


_DEFAULTS: Final = ClusterOptions()
