"""What clients have pushed of themselves (KIP-714), in Prometheus' text format: `org.apache.kafka.producer.record.send.total`
is `kafka_client_telemetry_producer_record_send_total`, with the attributes as labels.

There may be 100,000 numbers, which take seconds as objects of prometheus-client: the broker's loop only copies where they
are (`taken`), and another thread writes them down.
"""

from __future__ import annotations

import re

from ottla.broker.figures import COUNTER, GAUGE
from ottla.coordination.telemetry.pushed_metrics import PushedMetrics, Series, Value
from ottla.coordination.telemetry.subscription import Client
from ottla.protocol.metrics_data import Attributes

TOLD_BY_CLIENTS = "kafka_client_telemetry_"
KAFKAS = "org.apache.kafka."
"""How the names begin that clients of Kafka give their metrics."""
NO_NAME = re.compile(r"[^a-zA-Z0-9_]")
ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
Taken = list[tuple[Client, dict[Series, Value]]]


def taken(pushed: PushedMetrics) -> Taken:
    """A copy that stays as it is while clients go on to push."""
    return [(pusher.client, pusher.values.copy()) for _, pusher in pushed]


def written(clients: Taken) -> str:
    """The text of all of them; of two numbers that would be called the same, the later."""
    lines: list[str] = []
    for (name, kind), rows in sorted(by_name(clients).items()):
        lines += (f"# HELP {name} As its clients tell it.", f"# TYPE {name} {kind}")
        lines += [f"{name}{labels} {number!r}" for labels, number in rows.items()]
    return "".join(f"{line}\n" for line in lines)


def by_name(clients: Taken) -> dict[tuple[str, str], dict[str, float]]:
    """The numbers by what they are called here and whether they count, and by their labels."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    homes: dict[tuple[str, bool], dict[str, float]] = {}
    for client, values in clients:
        labels: dict[Attributes, str] = {}
        for (name, attributes), value in values.items():
            if (rows := homes.get((name, value.is_sum))) is None:
                rows = homes[name, value.is_sum] = found.setdefault(called(name, is_sum=value.is_sum), {})
            if (text := labels.get(attributes)) is None:
                text = labels[attributes] = labels_of(client, attributes)
            rows[text] = value.number
    return found


def called(name: str, *, is_sum: bool) -> tuple[str, str]:
    short = TOLD_BY_CLIENTS + NO_NAME.sub("_", name.removeprefix(KAFKAS))
    return short, COUNTER if is_sum and short.endswith("_total") else GAUGE


def labels_of(client: Client, attributes: Attributes) -> str:
    """Who it is before what it says of itself, which cannot say otherwise."""
    own = {"client_instance_id": client.client_instance_id, "client_id": client.client_id}
    said = {label_of(key): text for key, text in sorted(attributes)}
    pairs = (f'{key}="{text.translate(ESCAPES)}"' for key, text in (own | said | own).items())
    return f"{{{','.join(pairs)}}}"


def label_of(key: str) -> str:
    """A label's name; those that begin with two underscores are Prometheus' own."""
    short = NO_NAME.sub("_", key).lstrip("_")
    return f"_{short}" if not short or short[0].isdigit() else short
