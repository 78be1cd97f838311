"""Plain values that commands, replies, the state and fronts share: names, numbers, and functions of these alone.

The package is the ground floor of the core, beside `core.ids`. It knows no state and no rule, so that everybody may
import it.
"""
