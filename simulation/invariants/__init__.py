"""The invariants of the state, as functions over the state and the events that led to it. For tests and simulation."""
