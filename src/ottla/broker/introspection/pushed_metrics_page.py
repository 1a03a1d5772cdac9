"""Metrics that clients pushed (KIP-714) in Prometheus' text format.

`org.apache.kafka.producer.record.send.total` is
`kafka_client_telemetry_producer_record_send_total`, with the attributes as labels.

There may be 100,000 values, which take seconds as objects of prometheus-client. The broker's loop only copies
references (`build_page`), and another thread writes the text.
"""

from __future__ import annotations

import re

from ottla.broker.introspection.metrics import COUNTER, GAUGE
from ottla.coordination.telemetry.pushed_metrics import PushedMetrics, Series, Value
from ottla.coordination.telemetry.subscription import Client
from ottla.protocol.metrics_data import Attributes

TOLD_BY_CLIENTS = "kafka_client_telemetry_"
KAFKAS = "org.apache.kafka."
"""The prefix of the metrics of Kafka's clients."""
NO_NAME = re.compile(r"[^a-zA-Z0-9_]")
ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
PushedPage = list[tuple[Client, dict[Series, Value]]]


def build_page(pushed: PushedMetrics) -> PushedPage:
    """Return a copy that later pushes do not change."""
    return [(pusher.client, pusher.values.copy()) for _, pusher in pushed]


def format_page(clients: PushedPage) -> str:
    """Return the text of all metrics. If two get the same name and labels, the later one is used."""
    lines: list[str] = []
    for (name, kind), rows in sorted(by_name(clients).items()):
        lines += (f"# HELP {name} As reported by clients.", f"# TYPE {name} {kind}")
        lines += [f"{name}{labels} {number!r}" for labels, number in rows.items()]
    return "".join(f"{line}\n" for line in lines)


def by_name(clients: PushedPage) -> dict[tuple[str, str], dict[str, float]]:
    """Return values by Prometheus name and type, and by labels."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    homes: dict[tuple[str, bool], dict[str, float]] = {}
    for client, values in clients:
        labels: dict[Attributes, str] = {}
        for (name, attributes), value in values.items():
            if (rows := homes.get((name, value.is_sum))) is None:
                rows = homes[name, value.is_sum] = found.setdefault(export_name(name, is_sum=value.is_sum), {})
            if (text := labels.get(attributes)) is None:
                text = labels[attributes] = build_labels(client, attributes)
            rows[text] = value.number
    return found


def export_name(name: str, *, is_sum: bool) -> tuple[str, str]:
    short = TOLD_BY_CLIENTS + NO_NAME.sub("_", name.removeprefix(KAFKAS))
    return short, COUNTER if is_sum and short.endswith("_total") else GAUGE


def build_labels(client: Client, attributes: Attributes) -> str:
    """Return the labels. Those that identify the client cannot be overridden by its attributes."""
    own = {"client_instance_id": client.client_instance_id, "client_id": client.client_id}
    said = {export_label(key): text for key, text in sorted(attributes)}
    pairs = (f'{key}="{text.translate(ESCAPES)}"' for key, text in (own | said | own).items())
    return f"{{{','.join(pairs)}}}"


def export_label(key: str) -> str:
    """Return the name of a label. Names with two underscores at the start are reserved by Prometheus."""
    short = NO_NAME.sub("_", key).lstrip("_")
    return f"_{short}" if not short or short[0].isdigit() else short
