"""Flights of New York: a windowed aggregation and a stream-stream join, exactly once."""
