"""The views of the read model: one module for each question, which says what rights the asker needs.

A view leaves out what the asker may not see before anything is encoded. It hands over its answer when all that it says
is durable.
"""
