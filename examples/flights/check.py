"""Sets what came out of the pipeline against what pandas finds in the original file.

Nothing that went through the pipeline is used to decide what should have come out of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

KEY = ["day", "origin", "carrier"]


@dataclass(frozen=True)
class Verdict:
    """How the two compare."""

    flights_in: int
    counted: int
    missing: int
    """Flights of the original that no row counts."""
    counted_twice: int
    """Flights that rows count beyond those of the original: in a row too many, or in a number too high."""
    wrong: list[str]
    """Rows whose other figures differ."""
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
    """What the table of flights holds, by each record's place in the topic."""

    rows: int
    missing: int
    twice: int

    @property
    def good(self) -> bool:
        return self.missing == self.twice == 0

    def __str__(self) -> str:
        return f"Delta table: {self.rows} flights, {self.missing} missing, {self.twice} there twice"


def compare_table(flights_in: int, places: pd.DataFrame) -> TableVerdict:
    """`places` has a row for each of the table; the topic has one place for each flight."""
    different = len(places.drop_duplicates())
    return TableVerdict(len(places), flights_in - different, len(places) - different)


def compare(flights_in: int, delays: pd.DataFrame, expected: pd.DataFrame, airlines: dict[str, str]) -> Verdict:
    """`delays` has a row for each record of the topic, several for a day if it came out several times."""
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
    """A line for each row whose cancellations, delays or airline are not those of the original."""
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
    """Equal, or both missing."""
    return (left == right) | (left.isna() & right.isna())
