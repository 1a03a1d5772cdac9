"""A topic pattern that the broker matches."""

from __future__ import annotations

from typing import NamedTuple


class SubscriptionPattern(NamedTuple):
    """An argument of `subscribe`: a regular expression in RE2 syntax that must match whole topic names (KIP-848).

    The broker matches it, so members in all languages agree, and no member has to fetch all topic names. Requires
    `group.protocol = consumer`. A Python pattern, compiled with `re`, is matched in the client instead.
    """

    pattern: str
