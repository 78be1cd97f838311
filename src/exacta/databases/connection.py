"""The way to the cluster: Kafka's own settings, with the meaning that they have for Spark's source and sink."""

from collections.abc import Mapping

from exacta.client.security import Cluster
from exacta.databases.errors import TwoPhaseError

CLIENT_ID = "exacta-two-phase"


def cluster_of(bootstrap_servers: str, config: Mapping[str, str]) -> Cluster:
    """Return the cluster; raises `TwoPhaseError` for a setting that is wrong, or that says nothing of connections."""
    if not config:
        return Cluster(bootstrap=bootstrap_servers, client_id=CLIENT_ID)
    # Few programs give settings. The names and rules are those of the options of `format("exacta")`.
    from exacta.spark.options.parsing import OptionError
    from exacta.spark.options.properties import cluster_by

    try:
        cluster, unknown = cluster_by(bootstrap_servers, config, client_id=CLIENT_ID)
    except OptionError as error:
        raise TwoPhaseError(f"config: {error}".replace("option 'kafka.", "'")) from error
    if unknown:
        raise TwoPhaseError(f"config: {', '.join(unknown)} does not say how a cluster is reached")
    return cluster
