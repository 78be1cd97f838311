"""The clients of a world: state machines over frames, which retry as real ones do."""
