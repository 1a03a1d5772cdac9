"""Clients that push metrics as the page shows them (KIP-714), made of what their brokers tell Prometheus of them.

Pure. `PREFIX` is how those metrics begin that a broker was told by others; of its own none is read here.
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
"""What a list shows of a client, and the metrics that say it."""
LISTED = {PREFIX + name for names in COLUMNS.values() for name in names}
INSTANCE = 'client_instance_id="'
IDENTIFYING = ("client_instance_id", "client_id")
NAMING = ("group_id", "group_member_id", "group_instance_id", "transactional_id", "client_rack")
"""Labels of a client, which all of its numbers have."""


class Number(NamedTuple):
    """One line of a broker's page."""

    name: str
    labels: Mapping[str, str]
    value: float


@dataclass(slots=True)
class PushingClient:
    """All that the brokers know of one client."""

    instance_id: str
    client_id: str
    numbers: list[tuple[int, Number]] = field(default_factory=list)
    """With the broker that was told it."""

    @property
    def kind(self) -> str:
        """Producer, consumer or admin, as the names of its metrics begin; empty for others."""
        kinds = (kind for kind in KINDS for _, number in self.numbers if number.name.startswith(f"{kind}_"))
        return next(kinds, "").partition("_")[0]

    @property
    def named(self) -> str:
        """The group that it is of, or the id of its transactions."""
        labels = self.numbers[0][1].labels
        return labels.get("group_id") or labels.get("transactional_id") or ""

    def most(self, *names: str) -> float | None:
        """The largest value that any of these metrics has for the client as a whole; None where there is none."""
        values = [number.value for _, number in self.numbers if number.name in names and is_whole(number.labels)]
        return max(values, default=None)


def is_whole(labels: Mapping[str, str]) -> bool:
    """Whether it is not that of one topic, node or the like."""
    return not any(value for name, value in labels.items() if name not in {*IDENTIFYING, *NAMING})


def numbers_in(page: str, wanted: Callable[[str], bool] = lambda line: True) -> Iterator[Number]:
    """What clients have told, of a page in Prometheus' format; most of what is not `wanted` is only looked at, not read."""
    for line in page.splitlines():
        if line.startswith(PREFIX) and wanted(line) and (found := LINE.fullmatch(line)) is not None:
            labels = {name: unescaped(text) for name, text in LABEL.findall(found[2])}
            yield Number(found[1], labels, float(found[3]))


def unescaped(text: str) -> str:
    return ESCAPED.sub(lambda found: "\n" if found[1] == "n" else found[1], text) if "\\" in text else text


def listed_in(pages: Mapping[int, str]) -> dict[str, PushingClient]:
    """As `clients_in`, with those numbers alone that a list shows: of 10,000 clients a tenth of all, or less."""
    return clients_in(pages, Listed)


def instance_in(pages: Mapping[int, str], instance_id: str) -> PushingClient | None:
    """One client with all its numbers, where it is heard of."""
    label = f'="{instance_id}"'
    return clients_in(pages, lambda: lambda line: label in line).get(instance_id)


class Listed:
    """Whether a line says what a list shows, or is the first of its client; of one page."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, str]] = set()

    def __call__(self, line: str) -> bool:
        name, _, labels = line.partition("{")
        if name in LISTED:
            return True
        begin = labels.find(INSTANCE) + len(INSTANCE)
        who = name[len(PREFIX) :].partition("_")[0], labels[begin : labels.find('"', begin)]
        is_first = who not in self._seen
        self._seen.add(who)
        return is_first


def clients_in(
    pages: Mapping[int, str], wanted: Callable[[], Callable[[str], bool]] = lambda: lambda line: True
) -> dict[str, PushingClient]:
    """By instance id; the pages by the number of their broker."""
    clients: dict[str, PushingClient] = {}
    for broker, page in pages.items():
        for number in numbers_in(page, wanted()):
            instance_id, client_id = (number.labels.get(label, "") for label in IDENTIFYING)
            client = clients.setdefault(instance_id, PushingClient(instance_id, client_id))
            client.numbers.append((broker, number))
    return clients


def clients_view(clients: Iterable[PushingClient], text: str, most: int) -> View:
    """Those that have `text` in what names them."""
    found = [each for each in clients if text in f"{each.client_id} {each.named} {each.instance_id}"]
    found.sort(key=lambda each: (each.client_id, each.instance_id))
    return {"count": len(found), "clients": [client_row(each) for each in found[:most]]}


def client_row(client: PushingClient) -> View:
    return {
        "instance": client.instance_id,
        "client_id": client.client_id,
        "kind": client.kind,
        "of": client.named,
        "brokers": sorted({broker for broker, _ in client.numbers}),
        **{column: client.most(*names) for column, names in COLUMNS.items()},
    }


def client_view(client: PushingClient) -> View:
    """One client with all its numbers."""
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
