"""Choose a record's partition as the Java client does: by the murmur2 hash of its key.

`exacta.spark.arrow.partitioner` does the same for whole columns. A test holds both to each other.
"""

_SEED = 0x9747B28C
_M = 0x5BD1E995
_MASK = 0xFFFFFFFF


def partition_of_key(key: bytes, partitions: int) -> int:
    """Return the partition of a key. The Java client clears the sign bit before it takes the remainder."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def murmur2(data: bytes) -> int:
    """Return the 32-bit murmur2 hash, unsigned, with the Java client's seed."""
    found = _SEED ^ len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * _M & _MASK
        found = found * _M & _MASK ^ (word ^ word >> 24) * _M & _MASK
    if whole < len(data):
        found = (found ^ int.from_bytes(data[whole:], "little")) * _M & _MASK
    found = (found ^ found >> 13) * _M & _MASK
    return found ^ found >> 15
