"""Our clients have the same metrics as Java's clients, or the documentation names the missing ones with a reason."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from interop.java_programs import program
from ottla import Admin, Broker, NewTopic
from ottla.client.metrics.descriptions import GROUPS

PAGE = Path(__file__).parent.parent / "docs" / "metrics.md"
HEADING = "### Metrics of Java's clients that Ottla's do not have\n"


def numbers_of_java() -> set[tuple[str, str]]:
    """Return the group and name of each metric of Java's producer, consumers and admin client."""
    with Broker() as broker, Admin(broker.client_settings()) as admin:
        admin.create_topics([NewTopic("counted", 1)])
        command = program("Numbers", broker.bootstrap_servers, "counted")
        printed = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    return {(group, name) for group, name in re.findall(r"^NUMBER (\S+) (\S+)$", printed, re.MULTILINE)}


def documented_as_missing() -> list[str]:
    """Return the metrics that the page lists as missing. A common prefix of several names ends with "…"."""
    section = PAGE.read_text(encoding="utf-8").split(HEADING)[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row)]


def is_meant(group: str, name: str, by: str) -> bool:
    return by in (group, name) or (by.endswith("…") and name.startswith(by.removesuffix("…")))


def test_each_metric_of_java_exists_or_is_documented_as_missing() -> None:
    missing = {(group, name) for group, name in numbers_of_java() if name not in GROUPS.get(group, {})}
    left_out = documented_as_missing()
    assert {each for each in missing if not any(is_meant(*each, by) for by in left_out)} == set()
    assert [by for by in left_out if not any(is_meant(*each, by) for each in missing)] == []
