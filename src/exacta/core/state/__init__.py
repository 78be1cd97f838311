"""The data that the core decides on: plain structs below all rules. No rule of a protocol lies here."""
