"""A pattern of topics' names that the broker looks at."""

from __future__ import annotations

from typing import NamedTuple


class SubscriptionPattern(NamedTuple):
    """Handed to `subscribe`: a regular expression of RE2, of which every whole name it matches is meant (KIP-848).

    The broker matches it, so members of other languages agree on it, and nobody has to fetch the names of all topics. Needs
    `group.protocol = consumer`. A pattern of Python's, compiled by `re`, is matched in the client instead.
    """

    pattern: str
