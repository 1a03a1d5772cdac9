"""The console with a real broker, and the requests of its page."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import ottla.console
from ottla.broker.embedding.embedded_broker import Broker
from ottla.cli.options import admin_settings
from ottla.client.admin import Admin
from ottla.client.consumer import Consumer
from ottla.client.producer import Producer
from ottla.client.share import ShareConsumer
from ottla.model import TopicPartition
from tests.console.conftest import Browser, browser_of

SCRIPT = "<script>alert(1)</script>"
UUID_OF_KAFKA = re.compile(r"[\w-]{22}")
STATIC = Path(ottla.console.__file__).parent / "static"


def test_a_topic_is_created_shown_and_deleted(browser: Browser) -> None:
    assert browser.order("create-topic", name="made", partitions=3, configs={"retention.ms": "3600000"}) == (200, None)
    seen = browser.ask("topic", name="made")
    assert [(p["partition"], p["leader"], p["first"], p["end"]) for p in seen["partitions"]] == [
        (n, 1, 0, 0) for n in range(3)
    ]
    assert UUID_OF_KAFKA.fullmatch(seen["id"])  # as kafka-topics and ottla topics write it
    assert [c["value"] for c in seen["configs"] if not c["default"]] == ["3600000"]
    assert [(t["name"], t["partitions"]) for t in browser.ask("topics", text="MAD")["topics"]] == [("made", 3)]
    overview = browser.ask("overview")
    assert (len(overview["brokers"]), overview["under_replicated"]) == (1, [])
    assert browser.order("delete-topic", name="made") == (200, None)
    assert browser.ask("topics", text="made")["count"] == 0


def test_a_cluster_with_authentication_is_shown_like_any_other() -> None:
    with Broker(listen="SASL_SSL://127.0.0.1:0", users={"alice": "al1ce"}) as broker:
        settings = admin_settings(broker.client_settings())
        with (
            Producer(broker.client_settings()) as producer,
            browser_of(broker.bootstrap_servers, **settings) as browser,
        ):
            producer.send("orders", b"one").result(60)
            assert [topic["name"] for topic in browser.ask("topics")["topics"]] == ["orders"]
            assert [record["value"]["text"] for record in browser.ask("records", topic="orders")["records"]] == ["one"]


def test_a_config_is_set_and_deleted(browser: Browser) -> None:
    browser.order("create-topic", name="configured", partitions=1)
    assert configs_set(browser) == {}
    for value, after in (("60000", {"retention.ms": "60000"}), (None, {})):
        assert browser.order("set-config", topic="configured", name="retention.ms", value=value) == (200, None)
        assert configs_set(browser) == after
    status, answer = browser.order("set-config", topic="configured", name="retention.ms", value="soon")
    assert (status, "soon" in answer["error"]) == (502, True)
    status, answer = browser.order("set-config", topic="configured", name="retention.ms", value=7)
    assert (status, answer["error"]) == (400, "value 7 must be a text, or null for the default")


def configs_set(browser: Browser) -> dict[str, str]:
    configs = browser.ask("topic", name="configured")["configs"]
    return {config["name"]: config["value"] for config in configs if not config["default"]}


def test_records_are_found_by_offset_time_key_and_text(browser: Browser) -> None:
    browser.order("create-topic", name="found", partitions=2)
    for number in range(6):
        status, at = browser.order(
            "produce", topic="found", key=f"k{number % 3}", value=json.dumps({"n": number}), partition=number % 2
        )
        assert (status, at) == (200, {"partition": number % 2, "offset": number // 2})

    def numbers(**given: object) -> list[int]:
        seen = browser.ask("records", topic="found", **given)
        return sorted(json.loads(record["value"]["text"])["n"] for record in seen["records"])

    assert numbers(start="earliest") == [0, 1, 2, 3, 4, 5]
    assert numbers(start="latest", most=1, partition=1) == [5]
    assert numbers(start="offset", at=1, partition=0) == [2, 4]
    assert numbers(start="earliest", key="k1") == [1, 4]
    assert numbers(start="earliest", text='"n": 3') == [3]
    third = browser.ask("records", topic="found", start="offset", at=1, partition=0)["records"][0]["timestamp"]
    assert 2 in numbers(start="time", at=third)
    assert numbers(start="time", at=third + 10**9) == []


def test_a_record_with_a_script_stays_text(browser: Browser) -> None:
    browser.order("create-topic", name="scripts", partitions=1)
    browser.order("produce", topic="scripts", key=SCRIPT, value=SCRIPT)
    status, headers, body = browser.send("GET", "/api/records?topic=scripts&start=earliest")
    assert (status, headers["content-type"], headers["x-content-type-options"]) == (200, "application/json", "nosniff")
    assert json.loads(body)["records"][0]["value"]["text"] == SCRIPT
    _, headers, _ = browser.send("GET", "/")
    assert "default-src 'self'" in headers["content-security-policy"]
    markup = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(")
    assert not [file.name for file in STATIC.glob("*.js") if markup.search(file.read_text(encoding="utf-8"))]


def test_a_share_group_is_shown_with_its_members_start_offsets_and_lag(browser: Browser, broker: Broker) -> None:
    browser.order("create-topic", name="tasks", partitions=1)
    for _ in range(4):
        browser.order("produce", topic="tasks", value="x")
    with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.alter_share_group_offsets("workers", {TopicPartition("tasks", 0): 1})
    with ShareConsumer(bootstrap_servers=broker.bootstrap_servers, group_id="workers") as consumer:
        consumer.subscribe(["tasks"])
        assert next(iter(consumer.poll(20))).offset == 1
        seen = browser.ask("group", name="workers")
        assert (seen["type"], seen["state"], len(seen["members"])) == ("Share", "Stable", 1)
        (row,) = seen["partitions"]
        assert (row["topic"], row["offset"], row["lag"], row["end"]) == ("tasks", 1, 3, 4)
        assert row["member"] == seen["members"][0]["id"]
    assert ("workers", "Share") in [(g["name"], g["type"]) for g in browser.ask("groups")["groups"]]
    _, _, body = browser.send("GET", "/api/group?name=unknown")
    assert "there is no group 'unknown'" in json.loads(body)["error"]


def test_a_group_is_shown_with_its_lag_pushed_and_moved(browser: Browser, broker: Broker) -> None:
    browser.order("create-topic", name="read", partitions=1)
    for _ in range(4):
        browser.order("produce", topic="read", value="x")
    with Consumer(bootstrap_servers=broker.bootstrap_servers, group_id="readers") as consumer:
        consumer.commit({TopicPartition("read", 0): 1})
    assert "readers" in [g["name"] for g in browser.ask("groups")["groups"]]
    assert (seen := browser.ask("group", name="readers"))["lag"] == 3
    assert [(p["topic"], p["offset"], p["end"], p["lag"]) for p in seen["partitions"]] == [("read", 1, 4, 3)]
    assert first_pushed(browser, "/api/live/group?name=readers") == seen
    (row,) = browser.ask("preview-reset", group="readers", topic="read", to="latest")["partitions"]
    assert (row["offset"], row["new_offset"], row["read_again"], row["skipped"], row["lag"]) == (1, 4, 0, 3, 0)
    assert browser.ask("group", name="readers")["lag"] == 3, "a preview changes nothing"
    assert browser.order("reset-offsets", group="readers", topic="read", offsets={"0": 4}) == (200, None)
    assert browser.ask("group", name="readers")["lag"] == 0
    (row,) = browser.ask("preview-reset", group="readers", topic="read", to="earliest")["partitions"]
    assert (row["new_offset"], row["read_again"], row["skipped"], row["lag"]) == (0, 4, 0, 4)
    status, _, body = browser.send("GET", "/api/preview-reset?group=readers&topic=read&to=tomorrow")
    assert status == 400
    assert "'tomorrow'" in json.loads(body)["error"]
    for offsets in (None, {}, [1], {"first": 1}, {"0": "x"}, {"0": -1}):
        status, answer = browser.order("reset-offsets", group="readers", topic="read", offsets=offsets)
        assert status == 400, answer


def first_pushed(browser: Browser, path: str) -> object:
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", browser.door.port, timeout=60)
    connection.request("GET", path)
    line = connection.getresponse().readline()
    connection.close()
    return json.loads(line.removeprefix(b"data: "))


@pytest.mark.parametrize("action", ["create-topic", "delete-topic", "set-config", "produce", "reset-offsets", "fence"])
def test_nothing_is_changed_by_get(browser: Browser, action: str) -> None:
    assert browser.send("GET", f"/api/{action}?name=x&topic=x")[0] == 405


def test_a_foreign_host_or_origin_is_rejected_with_the_reason(browser: Browser) -> None:
    status, _, body = browser.send("GET", "/api/topics", Host="evil.example")
    assert (status, b"evil.example" in body) == (403, True)
    status, _, body = browser.send("POST", "/api/delete-topic", b"{}", Origin="http://evil.example")
    assert (status, b"evil.example" in body) == (403, True)


def test_impossible_arguments_are_a_clear_error(browser: Browser) -> None:
    status, _, body = browser.send("GET", "/api/topic?name=nowhere")
    assert status == 502
    assert "there is no topic 'nowhere'" in json.loads(body)["error"]
    status, _, body = browser.send("GET", "/api/records?topic=x&start=sideways")
    assert status == 400
    assert "'sideways'" in json.loads(body)["error"]
    status, answer = browser.order("produce", topic="nowhere", value="x")
    assert (status, "nowhere" in answer["error"]) == (502, True)


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("", "text/html"),
        ("static/console.js", "javascript"),
        ("static/console.css", "css"),
        ("static/xray.js", "javascript"),
        ("static/operate.js", "javascript"),
        ("static/tour.js", "javascript"),
        ("static/korean.js", "javascript"),
        ("static/schemas.js", "javascript"),
        ("static/xray.css", "css"),
    ],
)
def test_the_page_is_served_locally_and_fetches_nothing_from_other_hosts(
    browser: Browser, file: str, kind: str
) -> None:
    status, headers, body = browser.send("GET", f"/{file}")
    assert (status, kind in headers["content-type"]) == (200, True)
    assert set(re.findall(rb"https?://[\w.]+", body)) <= {b"http://www.w3.org"}


def test_every_box_of_the_x_ray_has_its_sentences_in_korean_too() -> None:
    files = ("xray.js", "inside.js", "korean.js")
    xray, inside, korean = ((STATIC / name).read_text(encoding="utf-8") for name in files)
    boxes = re.findall(r"^  (\w+): \[.*\",$", xray + inside, re.MULTILINE)
    assert len(boxes) == 20
    assert re.findall(r"^  (\w+): \"", korean, re.MULTILINE) == boxes
    known = set(re.findall(r"\"([^\"]+)\": \"", korean.replace('":\n    "', '": "')))
    assert set(re.findall(r"\bt\(\"([^\"]+)\"\)", xray + inside)) <= known
