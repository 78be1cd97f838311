"""What the pipeline and whoever watches it must agree on.

Imports nothing, so that neither drags the other's libraries in.
"""

ENRICHED_QUERY = "enriched"
DELAYS_QUERY = "delays"
WATERMARK_DAYS = 30
