"""Object stores that speak S3, Google's or Azure's protocol, for a log that several brokers share.

It needs the extra `exacta-log[cluster]`. Nothing imports this package but what opens such a log.
"""

from exacta.adapters.objects.obstore_store import ObstoreObjects, read_credentials

__all__ = ["ObstoreObjects", "read_credentials"]
