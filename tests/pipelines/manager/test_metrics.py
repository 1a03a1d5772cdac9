"""The metrics of pipelines for Prometheus."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from ottla.cli.main import main
from ottla.errors import ConfigError
from ottla.pipelines.manager.facts import Facts
from ottla.pipelines.manager.lifecycle import PipelineState
from ottla.pipelines.manager.metrics import COUNTER, METRICS, STATUS, page_of_metrics
from tests.broker.promql import names_in

ROOT = Path(__file__).parents[3]
OWN = "kafka_connect_"
BATCH = {"batch": 0, "rows_in": 5, "rows_out": 4, "lag": 7, "batch_seconds": 0.25, "dead_letters": 1, "position": 5}


def samples_at(url: str) -> dict[tuple[str, ...], float]:
    with urlopen(url, timeout=30) as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))
    return {(each.name, *each.labels.values()): each.value for family in families for each in family.samples}


def test_the_dashboard_draws_each_metric() -> None:
    panels = json.loads((ROOT / "docs" / "grafana" / "ottla.json").read_text())["panels"]
    drawn = {name for panel in panels for target in panel["targets"] for name in names_in(target["expr"])}
    reported = {STATUS, *(f"{metric.name}{'_total' * (metric.kind == COUNTER)}" for metric in METRICS)}
    assert {name for name in drawn if name.startswith(OWN)} == reported


def test_the_metrics_are_read_again_at_each_scrape() -> None:
    known = [Facts("copy", "topic a", "topic b"), Facts("files", "files in", "topic a", state="paused")]
    with page_of_metrics("127.0.0.1", 0) as (url, collector):
        assert not [name for name, *_ in samples_at(url) if name.startswith(OWN)]
        collector.facts = lambda: known
        known[0] = known[0].after("progress", BATCH, "running", 100.0).after("progress", BATCH, "running", 101.0)
        reported = samples_at(url)
    found = {name.removeprefix(OWN): value for (name, *labels), value in reported.items() if labels == ["copy"]}
    assert found == {
        "source_task_source_record_poll_total": 10,
        "sink_task_sink_record_send_total": 8,
        "task_error_deadletterqueue_produce_requests_total": 1,
        "source_task_records_lag_max": 7,
        "sink_task_last_batch_seconds": 0.25,
        "connector_consecutive_failures": 0,
        "connector_last_heard_timestamp_seconds": 101,
    }
    assert ("kafka_connect_source_task_records_lag_max", "files") not in reported
    states = {state: reported["kafka_connect_connector_status", "files", state] for state in PipelineState}
    assert states == {state: float(state is PipelineState.PAUSED) for state in PipelineState}
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    assert {name for name, *_ in reported if name.startswith(OWN)} == {n for n in page.split("`") if n.startswith(OWN)}


def test_an_address_in_use_or_invalid_is_a_one_line_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(
            ConfigError, match=f"127.0.0.1:{port}: the port is taken .* choose another with --metrics, or 0"
        ):
            page_of_metrics("127.0.0.1", port).__enter__()
    assert main(["pipeline", "run", str(tmp_path), "--metrics", "nowhere"]) == 2
    assert "invalid value 'nowhere' for --metrics: expected HOST:PORT" in capsys.readouterr().err
