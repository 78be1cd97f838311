"""The options that say how the cluster is reached; the same for reading and writing."""

from msgspec import Struct

from exacta.client.deadline import REQUEST_TIMEOUT_MS
from exacta.client.routing import BadBootstrap, parse_bootstrap
from exacta.client.security import CLIENT_ID, PLAINTEXT, Cluster, Security
from exacta.spark.options.parsing import Option, OptionError, Parsed, positive, text
from exacta.spark.options.security import SECURITY, judge_security


class ConnectionOptions(Struct, frozen=True, kw_only=True):
    """The cluster of a job, and the way to reach it."""

    bootstrap: str
    security: Security = PLAINTEXT
    client_id: str = CLIENT_ID
    request_timeout_ms: int = REQUEST_TIMEOUT_MS

    @property
    def cluster(self) -> Cluster:
        """Return the cluster that a client is made from."""
        return Cluster(
            bootstrap=self.bootstrap,
            security=self.security,
            client_id=self.client_id,
            request_timeout_ms=self.request_timeout_ms,
        )


def _bootstrap(name: str, value: str) -> str:
    try:
        parse_bootstrap(value)
    except BadBootstrap as error:
        raise OptionError(f"option '{name}': {error}") from error
    return value


CONNECTION = (
    Option(
        name="kafka.bootstrap.servers",
        field="bootstrap",
        parse=_bootstrap,
        default="needed",
        about="the brokers to ask first, as `host:port,host:port`",
    ),
    *SECURITY,
    Option(
        name="kafka.client.id",
        field="client_id",
        parse=text,
        default="`exacta-spark`",
        about="the client's name in the brokers' logs, metrics and quotas",
    ),
    Option(
        name="kafka.request.timeout.ms",
        field="request_timeout_ms",
        parse=positive,
        default="30000",
        about="a broker that leaves a request unanswered for this time is taken for lost",
    ),
)


def judge_connection(parsed: Parsed, doing: str) -> None:
    """Put the values of TLS and SASL together, and note what is missing or does not go together."""
    if parsed.lacks("bootstrap"):
        parsed.problems.append(f"{doing} needs option 'kafka.bootstrap.servers' (host:port,host:port)")
    judge_security(parsed)
