"""Pipelines to copy from; each with the program that proves it, which CI runs."""
