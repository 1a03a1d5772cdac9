"""Tables of records and groups, and the X-ray widget, in a notebook that a kernel executes."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator
from itertools import accumulate, count
from pathlib import Path
from typing import Any

import nbformat
import pytest

from ottla import Admin, Broker, Consumer, NewTopic, Producer, TopicPartition
from ottla.client.consumer.records import ConsumerRecords
from ottla.client.interface.html_tables import MOST_CHARACTERS, MOST_ROWS, moment_of, render_table
from ottla.notebook import XRay
from tests.patience import eventually

CELL_SECONDS = 60


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """A broker with thirty records, one of them with markup."""
    with Broker(log_retention_ms=-1) as broker:
        with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("orders", 2, 1)])
        with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
            producer.send(
                "orders", b"<script>alert(1)</script>", key=b"\xff\x00", partition=0, timestamp=1_767_225_600_000
            )
            for n in range(29):
                producer.send("orders", b"%d" % n, partition=n % 2)
        yield broker.bootstrap_servers


@pytest.fixture
def group(request: pytest.FixtureRequest) -> str:
    """A group for each test: a member commits what it has polled."""
    return str(request.node.name)


@pytest.fixture
def consumer(servers: str, group: str) -> Iterator[Consumer[Any, Any]]:
    with Consumer(bootstrap_servers=servers, group_id=group, auto_offset_reset="earliest") as made:
        made.subscribe(["orders"])
        yield made


def test_records_are_an_escaped_table_of_the_first_rows(servers: str) -> None:
    with Consumer(bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition("orders", 0)])
        text = consumer.poll(10)._repr_html_()
    assert "<script>" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "ff 00" in text
    assert "2026-01-01 00:00:00.000" in text
    assert "16 records" in text


def test_a_table_shows_some_rows_and_the_start_of_long_texts() -> None:
    text = render_table("t", ("a", "b"), (("x" * 500, None) for _ in range(100)), 100)
    assert text.count("<tr>") == MOST_ROWS + 1
    assert "… and 80 more" in text
    assert "x" * MOST_CHARACTERS + "… (500 characters)" in text
    assert "x" * (MOST_CHARACTERS + 1) not in text
    assert ">null<" in text
    assert moment_of(2**60) == str(2**60)
    empty: ConsumerRecords[Any, Any] = ConsumerRecords()
    assert "0 records" in empty._repr_html_()
    assert "<table" not in empty._repr_html_()


def test_a_group_is_a_table_of_its_members(servers: str, group: str, consumer: Consumer[Any, Any]) -> None:
    eventually(lambda: consumer.poll(0.1) is not None and len(consumer.assignment()) == 2)
    with Admin(bootstrap_servers=servers) as admin:
        text = admin.describe_consumer_groups([group])[group]._repr_html_()
    assert f"group {group}: Stable, 1 member<" in text
    assert "orders-0, orders-1" in text


def test_the_picture_of_a_consumer_follows_its_polls(consumer: Consumer[Any, Any]) -> None:
    widget = XRay(consumer, interval_seconds=0.01)
    try:
        counts = accumulate(len(consumer.poll(0.5)) for _ in count())
        eventually(lambda: next(counts) == 30)
        eventually(lambda: widget.picture["totals"]["records"] == 30)
        picture = widget.picture
        assert picture["group"]["state"] == "stable"
        assert picture["totals"]["rebalances"] >= 1
        assert picture["totals"]["fetches"] >= 1
        assert [(one["name"], one["lag"]) for one in picture["partitions"]] == [("orders-0", 0), ("orders-1", 0)]
        assert {event["lane"] for event in picture["events"]} >= {"poll", "records"}
        assert len(picture["events"]) <= 60
    finally:
        widget.close()
        widget.close()
    assert consumer.assignment()  # the consumer is still open


NOTEBOOK = """
import ottla
from ottla.notebook import XRay
consumer = ottla.Consumer(bootstrap_servers={servers!r}, group_id="cells", auto_offset_reset="earliest")
consumer.subscribe(["orders"])
XRay(consumer)
---
records = consumer.poll(30)
while not records:
    records = consumer.poll(30)
records
---
admin = ottla.Admin(bootstrap_servers={servers!r})
admin.describe_consumer_groups(["cells"])["cells"]
---
consumer.close()
admin.close()
"""


EXECUTE = """
import sys, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], 4)
NotebookClient(notebook, kernel_name="python3", timeout=int(sys.argv[2]), store_widget_state=True).execute()
nbformat.write(notebook, sys.argv[1])
"""
"""Runs in a process of its own, because jupyter_client leaves sockets to the garbage collector."""


def test_a_notebook_is_executed_and_shows_widget_and_tables(servers: str, tmp_path: Path) -> None:
    cells = [nbformat.v4.new_code_cell(text.strip()) for text in NOTEBOOK.format(servers=servers).split("---\n")]
    place = tmp_path / "cells.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), place)
    command = [sys.executable, "-c", EXECUTE, str(place), str(CELL_SECONDS)]
    subprocess.run(command, check=True, capture_output=True, timeout=4 * CELL_SECONDS)
    notebook = nbformat.read(place, 4)
    (widget,) = [output["data"] for output in notebook.cells[0]["outputs"] if "data" in output]
    model = widget["application/vnd.jupyter.widget-view+json"]["model_id"]
    state = notebook.metadata["widgets"]["application/vnd.jupyter.widget-state+json"]["state"][model]["state"]
    assert state["picture"]["topics"] == ["orders"]
    assert "export default" in state["_esm"]
    assert "<table" in notebook.cells[1]["outputs"][0]["data"]["text/html"]
    assert "group cells: Stable" in notebook.cells[2]["outputs"][0]["data"]["text/html"]


def test_another_object_than_a_consumer_is_an_error(recwarn: pytest.WarningsRecorder) -> None:
    with pytest.raises(TypeError, match="for consumer: expected an "):
        XRay("orders")  # type: ignore[arg-type]
    gc.collect()
    assert not recwarn.list
