"""The expected output of the flights pipeline, by pandas; this shares nothing with the pipeline but its constants.

A row comes out in Append mode when the watermark says that it is final, so what has come out at the end hangs on
where the watermark then stands: at the newest event time less the delay, in the join the lesser of the two streams'. A
window is out if its end is not after that, a flight without weather if its hour is not; a flight that met its hour's
weather is out in any case. Late rows do not come into this: they are dropped (see `pipeline.py`).
"""

from __future__ import annotations

import pandas as pd

from examples.flights.pipeline import WATERMARK_DELAY, WINDOW

TIME = "%Y-%m-%dT%H:%M:%SZ"
COPIED = ["flight_id", "scheduled", "carrier", "flight", "origin", "dest", "dep_delay"]


def expected_delays(flights: pd.DataFrame) -> pd.DataFrame:
    """Return the windows that are final, with their `key`; needs the column `scheduled_at`."""
    delay = flights["dep_delay"]
    prepared = pd.DataFrame(
        {
            "origin": flights["origin"],
            "begin": flights["scheduled_at"].dt.floor(WINDOW.replace(" hours", "h")),
            "cancelled": delay.isna(),
            "minutes_late": delay.clip(lower=0).fillna(0).astype(int),
        }
    )
    counted = (
        prepared.groupby(["origin", "begin"])
        .agg(flights=("cancelled", "size"), cancelled=("cancelled", "sum"), minutes_late=("minutes_late", "sum"))
        .reset_index()
    )
    watermark = flights["scheduled_at"].max() - pd.Timedelta(WATERMARK_DELAY)
    final = counted[counted["begin"] + pd.Timedelta(WINDOW) <= watermark]
    final = final.assign(begin=final["begin"].dt.strftime(TIME))
    return final.assign(key=final["origin"] + "|" + final["begin"])


def expected_flights_with_weather(flights: pd.DataFrame, weather: pd.DataFrame) -> pd.DataFrame:
    """Return the joined flights that are final, with their `key`; `weather` has `origin`, `hour` and what is joined."""
    flights = flights[[*COPIED, "scheduled_at"]].assign(hour=flights["scheduled_at"].dt.floor("h"))
    weather = weather.assign(hour=pd.to_datetime(weather["hour"], utc=True))
    watermark = min(flights["hour"].max(), weather["hour"].max()) - pd.Timedelta(WATERMARK_DELAY)
    joined = flights.merge(weather, how="left", on=["origin", "hour"], validate="many_to_one", indicator="met")
    final = joined[(joined["met"] == "both") | (joined["hour"] <= watermark)]
    return final.drop(columns=["scheduled_at", "hour", "met"]).assign(key=final["flight_id"].astype(str))
