"""The semantics of a transactional log: idempotence, transactions, visibility, groups and offsets.

The package owns every rule of the log. It knows no I/O, clock, randomness or wire format. Two verbs:
`decide(state, command, now_ms)` is pure and total and returns an `Outcome` (events, reply, timers);
`apply(state, event)` cannot fail. State is a fold of events, live and in recovery alike.
"""
