"""The days of the year with the largest delays, as a table."""

from __future__ import annotations

import pandas as pd
from rich.console import JustifyMethod
from rich.table import Table

AIRPORTS = {"EWR": "Newark", "JFK": "Kennedy", "LGA": "La Guardia"}


def by_day(delays: pd.DataFrame) -> pd.DataFrame:
    """Return a row per day: flights, cancelled, mean delay of the departed ones, worst delay, its airline and origin."""
    rows = delays.assign(late=delays["mean_delay"].fillna(0) * (delays["flights"] - delays["cancelled"]))
    days = rows.groupby("day")[["flights", "cancelled", "late"]].sum()
    days["mean_delay"] = days["late"] / (days["flights"] - days["cancelled"])
    worst = rows.loc[rows.groupby("day")["worst_delay"].idxmax().to_numpy()].set_index("day")
    days[["worst_delay", "airline", "origin"]] = worst[["worst_delay", "airline", "origin"]]
    return days.sort_index()


def worst_days(days: pd.DataFrame, count: int = 10) -> Table:
    """Return the `count` days with the largest mean delay."""
    title = f"The {count} worst days of 2013 at New York's airports"
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    for heading in ("day", "flights", "cancelled", "mean delay", "worst delay", "from"):
        side: JustifyMethod = "left" if heading in ("day", "from") else "right"
        table.add_column(heading, justify=side, no_wrap=True, min_width=10 if heading == "day" else len(heading))
    for day, row in days.nlargest(count, "mean_delay").iterrows():
        table.add_row(
            pd.Timestamp(str(day)).strftime("%a %d %b"),
            f"{row['flights']}",
            f"{row['cancelled']}",
            f"{row['mean_delay']:.0f} min",
            hours(int(row["worst_delay"])),
            f"{row['origin']} {row['airline'].removesuffix(' Inc.')}",
        )
    return table


def hours(minutes: int) -> str:
    """`21 h 41`."""
    return f"{minutes // 60} h {minutes % 60:02}"
