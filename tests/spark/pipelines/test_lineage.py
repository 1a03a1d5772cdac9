"""OpenLineage events of pipelines, written to a file by its own client."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from openlineage.client import OpenLineageClient
from openlineage.client.transport.file import FileConfig, FileTransport

from ottla.openlineage.lineage import Lineage
from ottla.pipelines.file.reading import read_text
from ottla.pipelines.manager.manager import Manager
from ottla.pipelines.manager.runner import PipelineEvent
from tests.spark.pipelines.test_manager import Folder, files_to
from tests.spark.pipelines.test_manager import folder as folder
from tests.spark.topics import Topics

pytestmark = pytest.mark.heavy


def run(folder: Folder, place: Path, **pipelines: Any) -> list[dict[str, Any]]:
    """Run pipelines to their end, and return the emitted events."""
    transport = FileTransport(FileConfig(log_file_path=str(place), append=True))
    lineage = Lineage(OpenLineageClient(transport=transport), "shop")
    text = json.dumps({"settings": folder.settings, "pipelines": pipelines})
    manager = Manager(read_text(text.encode(), "p.yaml", folder.path, {}), folder.spark, once=True, on_event=lineage)
    lineage.watch(manager.runners)
    manager.run()
    return [json.loads(line) for line in place.read_text(encoding="utf-8").splitlines()]


def test_a_run_starts_and_completes_with_datasets_and_columns(folder: Folder, topics: Topics, tmp_path: Path) -> None:
    out = f"{topics.prefix}-out"
    folder.write("in/a.csv", "id,card,at,amount\n1,4111,2026-01-01T00:00:00Z,2.5\n")
    start, complete = run(folder, tmp_path / "events", p=files_to(out, {"sql": "select id, amount from input"}))
    assert (start["eventType"], complete["eventType"]) == ("START", "COMPLETE")
    assert start["run"]["runId"] == complete["run"]["runId"]
    assert start["job"]["namespace"] == "shop"
    assert start["job"]["name"] == "p"
    (read,), (written,) = complete["inputs"], complete["outputs"]
    assert (read["namespace"], read["name"]) == ("file", str(folder.path / "in"))
    fields = [(field["name"], field["type"]) for field in read["facets"]["schema"]["fields"]]
    assert fields[:2] == [("id", "bigint"), ("card", "string")]
    assert (written["namespace"], written["name"]) == (f"kafka://{topics.servers}", out)
    assert [field["name"] for field in written["facets"]["schema"]["fields"]][:2] == ["id", "amount"]


def test_a_failed_run_has_its_reason(folder: Folder, topics: Topics, tmp_path: Path) -> None:
    folder.write("in/a.csv", "id,card,at,amount\n1,4111,2026-01-01T00:00:00Z,2.5\n")
    broken = files_to(f"{topics.prefix}-out", {"sql": "select raise_error('no such card') as id from input"})
    events = run(folder, tmp_path / "events", p=broken)
    assert [event["eventType"] for event in events][:2] == ["START", "FAIL"]
    assert "no such card" in events[1]["run"]["facets"]["errorMessage"]["message"]


def test_a_transport_that_fails_is_logged_and_stops_no_pipeline(
    folder: Folder, topics: Topics, caplog: pytest.LogCaptureFixture
) -> None:
    out = f"{topics.prefix}-out"
    folder.write("in/a.csv", "id,card,at,amount\n1,4111,2026-01-01T00:00:00Z,2.5\n")
    away = FileTransport(FileConfig(log_file_path=str(folder.path / "no" / "folder" / "events"), append=True))
    lineage = Lineage(OpenLineageClient(transport=away))
    events: list[PipelineEvent] = []
    text = json.dumps({"settings": folder.settings, "pipelines": {"p": files_to(out)}})

    def on_event(event: PipelineEvent) -> None:
        events.append(event)
        lineage(event)

    manager = Manager(read_text(text.encode(), "p.yaml", folder.path, {}), folder.spark, once=True, on_event=on_event)
    lineage.watch(manager.runners)
    assert manager.run()
    assert events[-1].event == "done"
    assert "OpenLineage event failed pipeline=p event=START" in caplog.text
