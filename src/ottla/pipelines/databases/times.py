"""Times and decimals that Python or Arrow's parsers cannot represent, as the numbers that Spark uses. Pure.

Spark's times are 64-bit microseconds since 1970, and its dates are 32-bit days. They include the years before Christ
and after 9999, which `datetime` and Arrow's CSV parser do not support. Other values are mapped as documented in
`docs/pipelines.md`.
"""

from __future__ import annotations

import re

TEXT = re.compile(
    r"(\d{4,7})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?([+-]\d\d(?::?\d\d){0,2})?)?( BC)?"
)
DAY_MICROS = 86_400_000_000
EPOCH_DAYS = 719_468
"""Days from the first of March of the year 0, where the count of days below starts, to 1970."""
INFINITE = {"infinity": (9999, 12, 31, DAY_MICROS - 1), "-infinity": (1, 1, 1, 0)}
"""The first and the last time that Python, Delta and most databases can represent: infinity remains the greatest time."""
FIRST_MICROS, LAST_MICROS = -(2**63), 2**63 - 1


def days_of(year: int, month: int, day: int) -> int:
    """Return days since 1970 in the proleptic Gregorian calendar; the year before 1 is 0."""
    year -= month <= 2
    century, of_century = divmod(year, 400)
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return century * 146_097 + of_century * 365 + of_century // 4 - of_century // 100 + of_year - EPOCH_DAYS


def parse_time(text: str) -> tuple[int, int]:
    """Return days since 1970 and microseconds of that day, parsed from PostgreSQL's or MySQL's notation; ValueError for other text."""
    if text in INFINITE:
        year, month, day, micros = INFINITE[text]
        return days_of(year, month, day), micros
    found = TEXT.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a time")
    year, month, day, hour, minute, second = (int(one or 0) for one in found.groups()[:6])
    part = int((found[7] or "").ljust(6, "0"))
    micros = ((hour * 60 + minute) * 60 + second) * 1_000_000 + part
    return days_of(1 - year if found[9] else year, month, day), micros - offset_micros(found[8])


def offset_micros(zone: str | None) -> int:
    """Return the offset from UTC of a zone such as `+05:30`."""
    if zone is None:
        return 0
    digits = zone[1:].replace(":", "").ljust(6, "0")
    seconds = (int(digits[:2]) * 60 + int(digits[2:4])) * 60 + int(digits[4:])
    return (-seconds if zone[0] == "-" else seconds) * 1_000_000


def micros_of(text: str) -> int:
    """Return microseconds since 1970, limited to 64 bits (the year 294247); ValueError for text that is not a time."""
    days, micros = parse_time(text)
    return max(FIRST_MICROS, min(LAST_MICROS, days * DAY_MICROS + micros))


def number_of(text: str, is_date: bool) -> int:
    """Return a date as days, a time as microseconds."""
    return parse_time(text)[0] if is_date else micros_of(text)


def text_of_micros(micros: int) -> str:
    """Return a time in UTC in PostgreSQL's notation."""
    days, rest = divmod(micros, DAY_MICROS)
    seconds, part = divmod(rest, 1_000_000)
    date, _, era = text_of_days(days).partition(" ")
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{part:06}"
    return f"{date} {clock}{' ' * bool(era)}{era}"


def text_of_days(days: int) -> str:
    """Return a date in PostgreSQL's notation."""
    count = days + EPOCH_DAYS
    era, of_era = divmod(count, 146_097)
    of_century = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * of_century + of_century // 4 - of_century // 100)
    month_index = (5 * of_year + 2) // 153
    day = of_year - (153 * month_index + 2) // 5 + 1
    month = month_index + (3 if month_index < 10 else -9)
    year = of_century + era * 400 + (month <= 2)
    return f"{year:04}-{month:02}-{day:02}" if year > 0 else f"{1 - year:04}-{month:02}-{day:02} BC"
