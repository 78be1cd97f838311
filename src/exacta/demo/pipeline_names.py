"""The names on which the pipeline and its watchers must agree.

This module imports nothing, so that neither drags the other's libraries in.
"""

ENRICHED_QUERY = "enriched"
DELAYS_QUERY = "delays"
WATERMARK_DAYS = 30
