"""The deterministic simulation: whole brokers and their clients in virtual time, from one seed each.

Nothing imports this package but its tests. `docs/explanation/simulation.md` says what is simulated, and what is not.
"""
