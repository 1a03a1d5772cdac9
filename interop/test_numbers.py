"""What Java's clients count of themselves, ours count as well, or the page says that they do not, and why."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from interop.java_programs import program
from ottla import Admin, Broker, NewTopic
from ottla.client.metrics.descriptions import GROUPS

PAGE = Path(__file__).parent.parent / "docs" / "metrics.md"
HEADING = "### What Java's clients tell and ours do not\n"


def numbers_of_java() -> set[tuple[str, str]]:
    """Group and name of each number of Java's producer, consumers and admin."""
    with Broker() as broker, Admin(broker.client_settings()) as admin:
        admin.create_topics([NewTopic("counted", 1)])
        command = program("Numbers", broker.bootstrap_servers, "counted")
        told = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    return {(group, name) for group, name in re.findall(r"^NUMBER (\S+) (\S+)$", told, re.MULTILINE)}


def named_on_the_page() -> list[str]:
    """What is left out; the beginning of several names has a … behind it."""
    section = PAGE.read_text(encoding="utf-8").split(HEADING)[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row)]


def is_meant(group: str, name: str, by: str) -> bool:
    return by in (group, name) or (by.endswith("…") and name.startswith(by.removesuffix("…")))


def test_each_number_of_java_s_is_told_or_named_as_left_out_and_no_other_is() -> None:
    missing = {(group, name) for group, name in numbers_of_java() if name not in GROUPS.get(group, {})}
    left_out = named_on_the_page()
    assert {each for each in missing if not any(is_meant(*each, by) for by in left_out)} == set()
    assert [by for by in left_out if not any(is_meant(*each, by) for each in missing)] == []
