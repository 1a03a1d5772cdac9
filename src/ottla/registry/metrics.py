"""The metrics of a registry in Prometheus' text format."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
HELP = {
    "ottla_registry_requests_total": ("counter", "Requests by method, first segment of the path and status."),
    "ottla_registry_request_seconds_total": ("counter", "Time spent on requests, by method and first segment."),
    "ottla_registry_subjects": ("gauge", "Subjects, deleted ones included."),
    "ottla_registry_versions": ("gauge", "Versions of all subjects, deleted ones included."),
    "ottla_registry_schemas": ("gauge", "Ids."),
    "ottla_registry_is_leader": ("gauge", "1 if this server is the leader."),
    "ottla_registry_offset": ("gauge", "Offset of the next record of the topic."),
    "ottla_registry_skipped_records_total": ("counter", "Records of the topic that could not be read."),
}
AREAS = frozenset(("subjects", "schemas", "compatibility", "config", "mode", "contexts", "metrics", "v1"))
METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "DELETE"))
"""Clients may send any method and path; the labels of samples are few."""


class RequestMetrics:
    """Counts requests."""

    def __init__(self) -> None:
        self._counts: defaultdict[tuple[str, str, int], int] = defaultdict(int)
        self._seconds: defaultdict[tuple[str, str], float] = defaultdict(float)

    def note_request(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count a request."""
        area = path.lstrip("/").partition("/")[0]
        area = area if area in AREAS else "other"
        method = method if method in METHODS else "other"
        self._counts[method, area, status] += 1
        self._seconds[method, area] += seconds

    def write_page(self, gauges: Mapping[str, float]) -> bytes:
        """Return the page, with further values by name."""
        samples: dict[str, list[str]] = {name: [f"{name} {value:g}"] for name, value in gauges.items()}
        samples["ottla_registry_requests_total"] = [
            f'ottla_registry_requests_total{{method="{method}",area="{area}",status="{status}"}} {count}'
            for (method, area, status), count in sorted(self._counts.items())
        ]
        samples["ottla_registry_request_seconds_total"] = [
            f'ottla_registry_request_seconds_total{{method="{method}",area="{area}"}} {seconds:.6f}'
            for (method, area), seconds in sorted(self._seconds.items())
        ]
        lines = []
        for name, (kind, text) in HELP.items():
            if samples.get(name):
                lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}", *samples[name]]
        return ("\n".join(lines) + "\n").encode()
