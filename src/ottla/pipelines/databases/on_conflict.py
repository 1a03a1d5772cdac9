"""What SQLite and PostgreSQL are told of rows whose key is there already. Pure; names are quoted by the caller."""

from __future__ import annotations

from collections.abc import Sequence


def upserted(key: Sequence[str], others: Sequence[str]) -> str:
    """The new row takes the place of the old one."""
    what = f"update set {', '.join(f'{one} = excluded.{one}' for one in others)}" if others else "nothing"
    return f"on conflict ({', '.join(key)}) do {what}"


def raised(table: str, key: str, number: str, other: str) -> str:
    """A number that only grows, with another column; no row is changed where it would not grow."""
    new = f"{number} = excluded.{number}, {other} = excluded.{other}"
    return f"on conflict ({key}) do update set {new} where {table}.{number} < excluded.{number}"
