"""A histogram whose bounds are powers of two: one addition to a list finds the bucket and counts.

It costs less than a search through bounds, and so requests can be counted as they pass.
"""

SECONDS = (-12, 4)
"""The exponents of the bounds of times: from a quarter of a millisecond to 16 seconds."""

ENTRIES = (0, 12)
"""The exponents of the bounds of counts: from 1 to 4096."""


class Histogram:
    """Counts values by size. The lowest bound is two to the power of `lowest`, the highest of `highest`."""

    __slots__ = ("_last", "_scale", "buckets", "lowest", "sum")

    def __init__(self, exponents: tuple[int, int]) -> None:
        self.lowest, highest = exponents
        self.buckets = [0] * (highest - self.lowest + 2)
        """The number of values up to each bound and above the one before; the last: above all bounds."""
        self.sum = 0.0
        self._last = len(self.buckets) - 1
        self._scale = 2.0**-self.lowest

    def add(self, value: float) -> None:
        """Count a value, of at least 0. One that is a bound exactly, which no time is, counts above it."""
        bucket = int(value * self._scale).bit_length()
        self.buckets[bucket if bucket < self._last else self._last] += 1
        self.sum += value

    def add_whole(self, value: int) -> None:
        """Count a whole number of at least 1; the lowest bound is 1."""
        bucket = (value - 1).bit_length()
        self.buckets[bucket if bucket < self._last else self._last] += 1
        self.sum += value

    @property
    def bounds(self) -> list[float]:
        """The upper bounds of the buckets but the last one, which has none."""
        return [2.0 ** (self.lowest + number) for number in range(self._last)]

    @property
    def count(self) -> int:
        """The number of values."""
        return sum(self.buckets)
