"""A picture of a broker: a box for each part, with the part's name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ottla.cli.live import panel
from ottla.client.admin.group_timeline import counted

if TYPE_CHECKING:
    from rich.console import RenderableType

MOST = 5
"""The lines of a box, so that all boxes fit in a terminal of 24 lines."""
WHOLE = 500
"""The lines of a box if all are requested."""


def draw_broker(seen: Mapping[str, Any], *, whole: bool = False) -> RenderableType:
    """Return the picture: groups, waiting requests, logs, replicas, the cleaner and requests; some or all lines of each."""
    from rich.table import Table

    most = WHOLE if whole else MOST

    boxes = Table.grid(expand=True)
    boxes.add_column(ratio=1)
    boxes.add_column(ratio=1)
    boxes.add_row(
        panel("GroupCoordinator", group_lines(seen, most), folds=whole),
        panel("Purgatory", waiting_lines(seen, most), folds=whole),
    )
    boxes.add_row(
        panel("LogManager", log_lines(seen, most), folds=whole),
        panel("ReplicaManager", replica_lines(seen, most), folds=whole),
    )
    boxes.add_row(
        panel("LogCleaner", [cleaner_line(seen["cleaner"])], folds=whole),
        panel("Requests", request_lines(seen), folds=whole),
    )
    return boxes


def cut_lines(lines: Sequence[str], most: int, more: int, none: str) -> list[str]:
    """Return the first `most` lines; the last one gives the number of those left out."""
    rest = len(lines) + more
    if not rest:
        return [none]
    if rest <= most:
        return list(lines)
    return [*lines[: most - 1], f"and {rest - len(lines[: most - 1])} more"]


def group_lines(seen: Mapping[str, Any], most: int) -> list[str]:
    """Return a line for each group, followed by a line for each of its members that waits."""
    lines: list[str] = []
    for group in seen["groups"]:
        members = counted(len(group["members"]) + group["more_members"], "member")
        left = "" if group["left_ms"] is None else f", {group['left_ms']:.0f} ms left"
        lines.append(f"{group['group']}  {group['state']} {group['epoch']}, {members}{left}")
        lines += [f"  {each['member_id'][:16]} {each['waits_for']}" for each in group["members"] if each["waits_for"]]
    return cut_lines(lines, most, seen["more_groups"], "no group is in memory")


def waiting_lines(seen: Mapping[str, Any], most: int) -> list[str]:
    lines = [
        f"{each['api']} of {each['client_id'] or 'this broker'}, {each['left_ms']:.0f} ms left: {', '.join(each['places'])}"
        for each in seen["waiting"]
    ]
    return cut_lines(lines, most, seen["more_waiting"], "no request waits")


def log_lines(seen: Mapping[str, Any], most: int) -> list[str]:
    lines = [
        f"{log['partition']}  {log['log_start']} to {log['log_end']}, HW {log['high_watermark']}, "
        f"{counted(len(log['segments']) + log['more_segments'], 'segment')}"
        for log in seen["partitions"]
    ]
    return cut_lines(lines, most, seen["more_partitions"], "no log is open")


def replica_lines(seen: Mapping[str, Any], most: int) -> list[str]:
    lines = [
        f"{log['partition']} at {copy['broker']}  "
        + ("not fetched yet" if copy["log_end"] < 0 else f"{max(0, log['log_end'] - copy['log_end'])} behind")
        + ("" if copy["in_sync"] else ", not in sync")
        for log in seen["partitions"]
        for copy in log["replicas"]
    ]
    return cut_lines(lines, most, 0, "no replica of a partition that this broker leads")


def cleaner_line(cleaner: Mapping[str, Any]) -> str:
    if cleaner["at"] is not None:
        return f"at {cleaner['at']} since {cleaner['since_ms']:.0f} ms"
    if cleaner["logs"]:
        return f"at rest; {cleaner['logs'][0]['partition']} is {cleaner['logs'][0]['dirty_ratio']:.0%} dirty"
    return "at rest"


def request_lines(seen: Mapping[str, Any]) -> list[str]:
    """Return the most frequent APIs with the 99th percentile of their latency, and the most active clients."""
    shown = [
        f"{each['api']} {each['answers']}" + ("" if each["p99_ms"] is None else f" ≤ {each['p99_ms']:g} ms")
        for each in seen["requests"][:3]
    ]
    asked = [f"{each['client_id'] or 'no client id'}: {each['requests']}" for each in seen["clients"][:2]]
    of_clients = [f"by client {', '.join(asked)}"] if asked else []
    return [counted(seen["connections"], "connection"), *(shown or ["no request yet"]), *of_clients]
