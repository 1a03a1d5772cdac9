"""Compare the results of the pipeline with those of pandas from the original file.

No data from the pipeline is used to compute the expected results.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

KEY = ["day", "origin", "carrier"]


@dataclass(frozen=True)
class Verdict:
    """The result of the comparison."""

    flights_in: int
    counted: int
    missing: int
    """Flights of the original that are in no row."""
    counted_twice: int
    """Flights in addition to those of the original, by a surplus row or by a count that is too high."""
    wrong: list[str]
    """Rows with other differences: cancellations, delays or airline."""
    expected: int

    @property
    def good(self) -> bool:
        return self.flights_in == self.counted == self.expected and not (
            self.missing or self.counted_twice or self.wrong
        )

    def __str__(self) -> str:
        return (
            f"{self.flights_in} flights in, {self.counted} counted, "
            f"{self.missing} missing, {self.counted_twice} counted twice"
        )


@dataclass(frozen=True)
class TableVerdict:
    """The count of flights in the table, and of missing and repeated ones, by their offsets in the topic."""

    rows: int
    missing: int
    twice: int

    @property
    def good(self) -> bool:
        return self.missing == self.twice == 0

    def __str__(self) -> str:
        return f"Delta table: {self.rows} flights, {self.missing} missing, {self.twice} there twice"


def compare_table(flights_in: int, places: pd.DataFrame) -> TableVerdict:
    """Compare the table with the topic.

    `places` has a row for each row of the table, and each flight has one offset in the topic.
    """
    different = len(places.drop_duplicates())
    return TableVerdict(len(places), flights_in - different, len(places) - different)


def compare(flights_in: int, delays: pd.DataFrame, expected: pd.DataFrame, airlines: dict[str, str]) -> Verdict:
    """Compare the results.

    `delays` has a row for each record of the topic, several for a day that was emitted several times.
    """
    counted = delays.groupby(KEY)["flights"].sum()
    both = pd.concat([expected["flights"].rename("expected"), counted.rename("counted")], axis=1).fillna(0).astype(int)
    surplus = both["counted"] - both["expected"]
    return Verdict(
        flights_in,
        int(counted.sum()),
        missing=int(-surplus[surplus < 0].sum()),
        counted_twice=int(surplus[surplus > 0].sum()),
        wrong=differences(delays, expected, airlines),
        expected=int(expected["flights"].sum()),
    )


def differences(delays: pd.DataFrame, expected: pd.DataFrame, airlines: dict[str, str]) -> list[str]:
    """Return a line for each row with cancellations, delays or an airline that differ from the original."""
    rows = delays.join(expected, on=KEY, how="inner", rsuffix="_expected")
    mean = (rows["mean_delay"] - rows["mean_delay_expected"]).abs() < 1e-9
    bad = rows[
        (rows["cancelled"] != rows["flights_expected"] - rows["departed"])
        | ~(mean | (rows["mean_delay"].isna() & rows["mean_delay_expected"].isna()))
        | ~same(rows["worst_delay"], rows["worst_delay_expected"])
        | (rows["airline"] != rows["carrier"].map(airlines))
    ]
    return [f"{row.day} {row.origin} {row.carrier} differs from the original" for row in bad.itertuples()]


def same(left: pd.Series[float], right: pd.Series[float]) -> pd.Series[bool]:
    """True if both are equal, or both are missing."""
    return (left == right) | (left.isna() & right.isna())
