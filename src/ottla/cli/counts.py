"""Counts of things in sentences."""

from __future__ import annotations


def format_count(count: int, noun: str, plural: str = "s") -> str:
    """Return the count with its noun: `1 batch`, `2,000 batches` for the plural `es`."""
    return f"{count:,} {noun}{plural * (count != 1)}"
