"""Tests of `exacta.protocol`."""
