"""The schema of what the engine stores: words that a journal keeps and compares, and never understands."""

from typing import NamedTuple


class Schema(NamedTuple):
    """The name of the schema that the engine writes, and the names of older ones that it reads as well.

    A name is printable ASCII. A journal keeps `writes` beside what it stores. It is opened only if the name that it has
    is `writes` or one of `reads`, and has the name `writes` from then on.
    """

    writes: str
    reads: tuple[str, ...] = ()
