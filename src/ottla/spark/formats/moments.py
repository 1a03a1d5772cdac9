"""Parses dates and times like Spark's casts, to days or microseconds since 1970.

Pure. A year has four to six digits (seven in a date) and may have a sign; months, days, hours, minutes and seconds have
one or two; missing parts on the right have their lowest value. A time without a date is rejected: Spark uses the
current date, so a second reading on another day would differ.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

SECOND = 1_000_000
DAY = 86_400 * SECOND

DATE = re.compile(r"([+-]?)([0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.DOTALL)
MOMENT = re.compile(
    r"([+-]?)([0-9]{4,6})(?:-([0-9]{1,2})(?:-([0-9]{1,2})"
    r"(?:[ T]([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*))?(?P<zone>[^0-9.].*)?)?)?)?)?)?",
    re.DOTALL,
)
OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])([0-9]{1,2})(?::?([0-9]{1,2}))?(?::?([0-9]{1,2}))?")
ZULU = {"Z", "UTC", "GMT", "UT"}
SHORT = {"EST": "-05:00", "MST": "-07:00", "HST": "-10:00", "CST": "America/Chicago", "PST": "America/Los_Angeles"}
"""Java's short names of zones that are still common."""
MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def days_of(text: str) -> int:
    """Return the days of a date, or of the date of a time; ValueError for other text."""
    match = DATE.fullmatch(text.strip())
    if match is None:
        raise ValueError(text)
    sign, year, month, day = match.groups()
    return days_since_1970(signed(sign, year), int(month or 1), int(day or 1))


def micros_of(text: str, zone: str) -> int:
    """Return the microseconds of a time, in `zone` if it has none; ValueError for other text."""
    match = MOMENT.fullmatch(text.strip())
    if match is None:
        raise ValueError(text)
    return utc(local_micros(match), (match["zone"] or "").strip() or zone)


def local_micros_of(text: str) -> int:
    """Return the microseconds of a time without a zone; ValueError if it has one."""
    match = MOMENT.fullmatch(text.strip())
    if match is None or match["zone"]:
        raise ValueError(text)
    return local_micros(match)


def local_micros(match: re.Match[str]) -> int:
    """Return the microseconds of the digits, without a zone."""
    sign, year, month, day, hour, minute, second, fraction, _ = match.groups()
    days = days_since_1970(signed(sign, year), int(month or 1), int(day or 1))
    hours, minutes, seconds = int(hour or 0), int(minute or 0), int(second or 0)
    if hours > 23 or minutes > 59 or seconds > 59:
        raise ValueError(match[0])
    micros = int((fraction or "0").ljust(6, "0")[:6])
    return days * DAY + (hours * 3600 + minutes * 60 + seconds) * SECOND + micros


def utc(micros: int, zone: str) -> int:
    """Return the time in UTC when clocks in `zone` show `micros`."""
    if zone in ZULU:
        return micros
    zone = SHORT.get(zone, zone)
    match = OFFSET.fullmatch(zone)
    if match is None:
        return utc_of_region(micros, region(zone))
    sign, hours, minutes, seconds = match.groups()
    span = int(hours) * 3600 + int(minutes or 0) * 60 + int(seconds or 0)
    if span > 18 * 3600 or int(minutes or 0) > 59 or int(seconds or 0) > 59:
        raise ValueError(zone)
    return micros - (-span if sign == "-" else span) * SECOND


def region(name: str) -> ZoneInfo:
    """Return a zone such as Europe/Paris; ValueError if it does not exist."""
    try:
        return ZoneInfo(name)
    except (OSError, KeyError, ValueError):
        raise ValueError(f"{name!r} is not a time zone") from None


def utc_of_region(micros: int, zone: ZoneInfo) -> int:
    """Return the time in UTC as Java does: the earlier of two ambiguous times, and a skipped time moved forward."""
    clock = datetime(1970, 1, 1) + timedelta(microseconds=micros)
    offset = clock.replace(tzinfo=zone).utcoffset()
    assert offset is not None
    return micros - round(offset / timedelta(microseconds=1))


def days_since_1970(year: int, month: int, day: int) -> int:
    """Return days in the proleptic Gregorian calendar, for any year; ValueError if the day does not exist."""
    if not 1 <= month <= 12:
        raise ValueError(month)
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not 1 <= day <= MONTH_DAYS[month - 1] + (leap and month == 2):
        raise ValueError(day)
    # Computed with whole eras of 400 years, because `datetime` only supports the years 1 to 9999.
    era, within = divmod(year, 400)
    return (datetime(within + 2000, month, day, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)).days + (
        era - 5
    ) * 146_097


def signed(sign: str, year: str) -> int:
    return -int(year) if sign == "-" else int(year)
