"""The semantics of a transactional log: idempotence, transactions, visibility, groups and offsets.

Owns every rule of DESIGN section 2; knows no I/O, clock, randomness or wire format. Two verbs:
`decide(state, command, now_ms)` is pure and total and returns an `Outcome` (events, reply, timers);
`apply(state, event)` cannot fail. State is a fold of events, live and in recovery alike.
"""
