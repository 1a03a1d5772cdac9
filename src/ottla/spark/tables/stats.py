"""The statistics of a Parquet file's footer in the format of Delta's log, which lets readers skip files. Pure."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from typing import Any

import pyarrow.parquet as pq

LONGEST = 32
"""Characters; longer texts are not stored as bounds."""


def stats_of(footer: pq.FileMetaData) -> str:
    """Return JSON with `numRecords`, and for plain columns `minValues`, `maxValues` and `nullCount`."""
    least: dict[str, Any] = {}
    most: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for index in range(footer.num_columns):
        groups = [footer.row_group(group).column(index) for group in range(footer.num_row_groups)]
        found: list[Any] = [group.statistics for group in groups if group.is_stats_set]
        name = groups[0].path_in_schema if groups else ""
        if "." in name or len(found) < len(groups):  # parts of a struct are left out
            continue
        if all(stats.has_null_count for stats in found):
            nulls[name] = sum(stats.null_count for stats in found)
        full = [stats for stats in found if stats.num_values]
        if full and all(stats.has_min_max for stats in full):
            low, high = bounds_of(full)
            if low is not None and high is not None:
                least[name], most[name] = low, high
    return json.dumps({"numRecords": footer.num_rows, "minValues": least, "maxValues": most, "nullCount": nulls})


def bounds_of(found: list[Any]) -> tuple[Any, Any]:
    """Return the lowest and the highest value as JSON; None for times outside of the years 1 to 9999, which Python cannot represent.

    Without bounds a reader reads the file.
    """
    try:
        return as_json(min(stats.min for stats in found)), as_json(max(stats.max for stats in found))
    except (OverflowError, ValueError):
        return None, None


def as_json(value: object) -> Any:
    """Return a bound as JSON; None for types that are not stored."""
    match value:
        case bool() | bytes() | float():  # a footer does not show NaN, which some readers order above all numbers
            return None
        case int():
            return value
        case str():
            return value if len(value) <= LONGEST else None
        case datetime():
            moment = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
            return moment.isoformat(timespec="microseconds") + ("Z" if value.tzinfo else "")
        case date():
            return value.isoformat()
    return None
