"""The clauses of SQLite and PostgreSQL for rows with an existing key. Pure; names are quoted by the caller."""

from __future__ import annotations

from collections.abc import Sequence


def upsert_clause(key: Sequence[str], others: Sequence[str]) -> str:
    """Return the clause that replaces the existing row."""
    what = f"update set {', '.join(f'{one} = excluded.{one}' for one in others)}" if others else "nothing"
    return f"on conflict ({', '.join(key)}) do {what}"


def raise_clause(table: str, key: str, number: str, other: str) -> str:
    """Return the clause for a number that only grows, with another column; no row is changed if it would not grow."""
    new = f"{number} = excluded.{number}, {other} = excluded.{other}"
    return f"on conflict ({key}) do update set {new} where {table}.{number} < excluded.{number}"
