"""The values that say how a cluster is reached: they are keys, and show no secret."""

from exacta.client.security import PLAINTEXT, Cluster, KeyStore, Sasl, Security, Tls, TrustStore


def test_no_secret_in_a_repr_and_a_cluster_is_a_key():
    def cluster(password):
        return Cluster(
            bootstrap="a:1",
            security=Security(
                tls=Tls(
                    truststore=TrustStore(location="t", password="hidden-1"),
                    keystore=KeyStore(
                        key="hidden-2", certificate_chain="c", password="hidden-3", key_password="hidden-4"
                    ),
                ),
                sasl=Sasl(mechanism="PLAIN", username="u", password=password),
            ),
        )

    assert "hidden" not in repr(cluster("hidden-5"))
    assert {cluster("a"): 1, cluster("a"): 2, cluster("b"): 3} == {cluster("a"): 2, cluster("b"): 3}
    assert PLAINTEXT.protocol == "PLAINTEXT"
