"""Tests that compare with Kafka's definitions are there when the definitions are."""

from __future__ import annotations

from tests.protocol.facts import FOLDER

collect_ignore = [] if FOLDER.is_dir() else ["test_facts.py"]
