"""The questions that fronts ask of the state: one file a subject, one function a question.

A query is a function `(state, ..., now_ms) -> value`. It is handed to `Log.read`, `Log.view` or `Advice`, so that a
front names neither `State` nor a field of it. The answer holds what the front translates to its wire, and nothing that
goes on changing: frozen structs of the state are handed out as they are.
"""
