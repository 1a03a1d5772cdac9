"""Views of clients that push metrics (KIP-714), built from the Prometheus pages of their brokers. Pure.

`PREFIX` marks the metrics that clients pushed to a broker; the broker's own metrics are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.console.views import View

PREFIX = "kafka_client_telemetry_"
LINE = re.compile(PREFIX + r"(\w+)\{(.*)\} (\S+)")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
ESCAPED = re.compile(r"\\(.)")
KINDS = ("producer", "consumer", "admin_client")
COLUMNS = {
    "records": ("producer_record_send_rate", "consumer_fetch_manager_records_consumed_rate"),
    "requests": tuple(f"{kind}_request_rate" for kind in KINDS),
    "latency_ms": tuple(f"{kind}_request_latency_avg" for kind in KINDS),
    "errors": ("producer_record_error_total",),
    "lag": ("consumer_fetch_manager_records_lag_max",),
}
"""The columns of the client list, and the metrics of each."""
LIST_METRICS = {PREFIX + name for names in COLUMNS.values() for name in names}
INSTANCE = 'client_instance_id="'
IDENTIFYING = ("client_instance_id", "client_id")
NAMING = ("group_id", "group_member_id", "group_instance_id", "transactional_id", "client_rack")
"""Labels that all metrics of a client have."""


class PushedNumber(NamedTuple):
    """One sample of a broker's page."""

    name: str
    labels: Mapping[str, str]
    value: float


@dataclass(slots=True)
class PushingClient:
    """All metrics of one client, from all brokers."""

    instance_id: str
    client_id: str
    numbers: list[tuple[int, PushedNumber]] = field(default_factory=list)
    """The samples with the id of the broker that received them."""

    @property
    def kind(self) -> str:
        """Return producer, consumer or admin from the names of its metrics; empty for other clients."""
        kinds = (kind for kind in KINDS for _, number in self.numbers if number.name.startswith(f"{kind}_"))
        return next(kinds, "").partition("_")[0]

    @property
    def group_or_transactional_id(self) -> str:
        """Return the group id or the transactional id, or an empty text."""
        labels = self.numbers[0][1].labels
        return labels.get("group_id") or labels.get("transactional_id") or ""

    def most(self, *names: str) -> float | None:
        """Return the largest value of these metrics for the whole client, or None."""
        values = [number.value for _, number in self.numbers if number.name in names and is_whole(number.labels)]
        return max(values, default=None)


def is_whole(labels: Mapping[str, str]) -> bool:
    """Return true if the labels are not limited to one topic, node or the like."""
    return not any(value for name, value in labels.items() if name not in {*IDENTIFYING, *NAMING})


def numbers_in(page: str, wanted: Callable[[str], bool] = lambda line: True) -> Iterator[PushedNumber]:
    """Yield the samples of client metrics on a page in Prometheus format; lines that are not `wanted` are not parsed."""
    for line in page.splitlines():
        if line.startswith(PREFIX) and wanted(line) and (found := LINE.fullmatch(line)) is not None:
            labels = {name: unescaped(text) for name, text in LABEL.findall(found[2])}
            yield PushedNumber(found[1], labels, float(found[3]))


def unescaped(text: str) -> str:
    return ESCAPED.sub(lambda found: "\n" if found[1] == "n" else found[1], text) if "\\" in text else text


def clients_for_list(pages: Mapping[int, str]) -> dict[str, PushingClient]:
    """Return the clients with the samples of the list only: for 10,000 clients a tenth of all samples, or less."""
    return clients_in(pages, ListFilter)


def find_client(pages: Mapping[int, str], instance_id: str) -> PushingClient | None:
    """Return one client with all its samples, or None if it is unknown."""
    label = f'="{instance_id}"'
    return clients_in(pages, lambda: lambda line: label in line).get(instance_id)


class ListFilter:
    """A predicate for the lines of one page: true for samples of the list and for the first line of each client."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, str]] = set()

    def __call__(self, line: str) -> bool:
        name, _, labels = line.partition("{")
        if name in LIST_METRICS:
            return True
        start_offsets = labels.find(INSTANCE) + len(INSTANCE)
        client = name[len(PREFIX) :].partition("_")[0], labels[start_offsets : labels.find('"', start_offsets)]
        is_first = client not in self._seen
        self._seen.add(client)
        return is_first


def clients_in(
    pages: Mapping[int, str], wanted: Callable[[], Callable[[str], bool]] = lambda: lambda line: True
) -> dict[str, PushingClient]:
    """Return the clients by instance id; `pages` has the pages by broker id."""
    clients: dict[str, PushingClient] = {}
    for broker, page in pages.items():
        for number in numbers_in(page, wanted()):
            instance_id, client_id = (number.labels.get(label, "") for label in IDENTIFYING)
            client = clients.setdefault(instance_id, PushingClient(instance_id, client_id))
            client.numbers.append((broker, number))
    return clients


def clients_view(clients: Iterable[PushingClient], text: str, most: int) -> View:
    """Return the clients that contain `text` in a name or an id."""
    found = [
        each for each in clients if text in f"{each.client_id} {each.group_or_transactional_id} {each.instance_id}"
    ]
    found.sort(key=lambda each: (each.client_id, each.instance_id))
    return {"count": len(found), "clients": [client_row(each) for each in found[:most]]}


def client_row(client: PushingClient) -> View:
    return {
        "instance": client.instance_id,
        "client_id": client.client_id,
        "kind": client.kind,
        "of": client.group_or_transactional_id,
        "brokers": sorted({broker for broker, _ in client.numbers}),
        **{column: client.most(*names) for column, names in COLUMNS.items()},
    }


def client_view(client: PushingClient) -> View:
    """Return one client with all its metrics."""
    rows = [
        {
            "name": number.name,
            "of": ", ".join(
                f"{label} {value}"
                for label, value in sorted(number.labels.items())
                if value and label not in {*IDENTIFYING, *NAMING}
            ),
            "value": number.value,
            "broker": broker,
        }
        for broker, number in client.numbers
    ]
    labels = {label: client.numbers[0][1].labels.get(label) for label in NAMING}
    facts = {label: value for label, value in labels.items() if value}
    return {**client_row(client), "facts": facts, "numbers": sorted(rows, key=lambda row: (row["name"], row["of"]))}
