"""A pipeline that really runs, on the console: paused, resumed, and what it put aside sent again."""

from __future__ import annotations

import pytest

from ottla.cli.pipelines.desk import PipelineDesk
from tests.console.conftest import Browser, browser_of
from tests.patience import eventually
from tests.spark.pipelines.test_control import LONG, Running, running, values
from tests.spark.pipelines.test_manager import topic
from tests.spark.topics import Topics

pytestmark = pytest.mark.heavy

__all__ = ["running"]


def state_of(asking: Browser) -> str:
    (row,) = asking.ask("pipelines")
    return str(row["state"])


def test_a_pipeline_is_paused_resumed_and_its_dead_letters_sent_again_from_the_page(
    running: Running, topics: Topics
) -> None:
    source, out, dead = topics.create("in"), topics.create("out"), topics.create("dead")
    copy = {
        "source": topic(source, valueFormat="json", valueSchema="id bigint"),
        "sink": topic(out),
        "trigger": "100 milliseconds",
        "errors": {"tolerance": "all", "deadLetterTopic": dead},
    }
    running.write(topics.servers, copy=copy)
    topics.send(source, '{"id": 1}', "no order", key=b"k")
    with running.manager(), browser_of(topics.servers, pipelines=PipelineDesk(running.file)) as asking:
        eventually(lambda: len(values(topics, out)) == 1 and len(values(topics, dead)) == 1, LONG)
        eventually(lambda: asking.ask("pipelines")[0]["dead_letters"] == 1, LONG)
        assert asking.order("pause", name="copy") == (200, "copy is paused")
        eventually(lambda: state_of(asking) == "paused", LONG)
        status, answer = asking.order("resend", name="copy")
        assert (status, answer.split()[0]) == (200, "1")
        assert values(topics, source) == [b'{"id": 1}', b"no order", b"no order"]
        topics.send(source, '{"id": 2}', key=b"k")
        assert asking.order("resume", name="copy") == (200, "copy is running")
        eventually(lambda: len(values(topics, out)) == 2 and len(values(topics, dead)) == 2, LONG)
        status, answer = asking.order("pause", name="copies")
        assert (status, "there is no pipeline 'copies'" in answer["error"]) == (502, True)
