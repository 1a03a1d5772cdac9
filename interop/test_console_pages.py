"""Test the console in a real Chromium: every page in every theme, by keyboard, including error messages.

If OTTLA_PICTURES is set, the tests write the pictures of docs/pictures to that folder (`make pictures`).
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from ottla import Admin, Broker, Consumer, NewTopic, Producer, TopicPartition
from ottla.client.admin import ConfigResource
from ottla.console.schema_registry import LIMITS, ConsoleRegistry
from ottla.free_ports import free_port
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.schemas import AvroSerializer, Schema, SchemaRegistryClient
from tests.broker.wire import Wire
from tests.console.conftest import browser_of
from tests.registry.running import running_registry
from tools.chromium import LOOKS, NARROW, PATIENCE_MS, WIDE, Look, audited, chromium, page_of

expect.set_options(timeout=PATIENCE_MS)
PICTURES = os.environ.get("OTTLA_PICTURES")
BILL: dict[str, Any] = {
    "type": "record",
    "name": "Bill",
    "fields": [{"name": "id", "type": "long"}, {"name": "amount", "type": "double"}],
}
SCRIPT = "<script>document.title = 'taken'</script><img src=x onerror=\"document.title = 'taken'\">"
LARGE_BYTES = 5_000_000
MEMBERS = 500
TOPICS = 10_000
ATTEMPTS = 2_000
IN_DOCS = {
    "console-tour-light-1280",
    "console-topic-light-1280",
    "console-xray-consumer-light-1280",
    "console-xray-broker-light-1280",
    "console-pipelines-light-1280",
    "console-clients-light-1280",
    "console-schema-light-1280",
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("traces")


@pytest.fixture(scope="module")
def cluster(traces: Path) -> Iterator[str]:
    """A broker with an example of every resource."""
    with Broker(
        process=True,
        trace_folder=str(traces),
        metrics_listen=f"127.0.0.1:{free_port()}",
        group_consumer_session_timeout_ms=600_000,
        group_consumer_max_session_timeout_ms=600_000,
    ) as broker:
        fill(broker.bootstrap_servers)
        yield broker.bootstrap_servers


def fill(address: str) -> None:
    with Admin(bootstrap_servers=address) as admin, Producer(bootstrap_servers=address) as producer:
        admin.create_topics([NewTopic("orders", 3, configs={"retention.ms": "3600000"}), NewTopic("scripts", 1)])
        admin.alter_configs({ConfigResource("client-metrics", "all"): {"metrics": "*", "interval.ms": 1000}})
        admin.create_topics([NewTopic("large", 1, configs={"max.message.bytes": "6000000"})])
        for number in range(30):
            producer.send("orders", json.dumps({"id": number, "card": "…"}).encode(), key=b"k%d" % (number % 5))
        producer.send("scripts", SCRIPT.encode(), key=SCRIPT.encode(), headers=[(SCRIPT, SCRIPT.encode())])
        producer.flush()
    with Consumer(bootstrap_servers=address, group_id="billing") as consumer:
        consumer.commit({TopicPartition("orders", partition): 2 for partition in range(3)})
    with Producer(bootstrap_servers=address, max_request_size=6_000_000) as producer:
        producer.send("large", json.dumps({"text": "x" * LARGE_BYTES}).encode()).result(60)


@pytest.fixture(scope="module")
def writing(cluster: str) -> Iterator[Producer]:
    """A producer with an open transaction."""
    with Producer(bootstrap_servers=cluster, transactional_id="bills-1", transaction_timeout_ms=600_000) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("orders", b"a bill").result(60)
        yield producer


@pytest.fixture(scope="module")
def reading(cluster: str, traces: Path) -> Iterator[str]:
    """The client id of a consumer that reads and exposes its state."""
    stop = threading.Event()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OTTLA_TRACE", str(traces))
        consumer = Consumer(
            bootstrap_servers=cluster, group_id="looked-at", auto_offset_reset="earliest", client_id="eyes"
        )
    consumer.subscribe(["orders"])
    thread = threading.Thread(target=read_until, args=(consumer, stop))
    thread.start()
    yield "eyes"
    stop.set()
    thread.join(60)


def read_until(consumer: Consumer, stop: threading.Event) -> None:
    with consumer:
        while not stop.is_set():
            consumer.poll(0.1)


class Pipelines:
    """Two pipelines, one running and one stopped."""

    def __init__(self) -> None:
        self.letters = 2

    def status(self) -> list[dict[str, Any]]:
        facts = {"batch": 41, "rows_in": 12_400, "rows_out": 12_398, "lag": 3, "seconds": 0.4, "last_error": None}
        runs = {"name": "orders-to-postgres", "state": "running", "dead_letters": self.letters, **facts}
        why = "table 'bills' has no column 'amount'; add it, or leave the field out by `select`"
        return [runs, {**facts, "name": "bills", "state": "failed", "dead_letters": 0, "last_error": why}]

    def resend(self, name: str) -> str:
        self.letters, sent = 0, self.letters
        return f"{sent} sent again"

    def pause(self, name: str) -> str:
        return f"{name} is paused"

    def resume(self, name: str) -> str:
        return f"{name} is running"


@pytest.fixture(scope="module")
def sending(cluster: str, traces: Path) -> Iterator[str]:
    """The client id of a producer that sends and exposes its state."""
    stop = threading.Event()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OTTLA_TRACE", str(traces))
        producer = Producer(bootstrap_servers=cluster, client_id="hands")
    thread = threading.Thread(target=send_until, args=(producer, stop))
    thread.start()
    yield "hands"
    stop.set()
    thread.join(60)


def send_until(producer: Producer, stop: threading.Event) -> None:
    with producer:
        while not stop.wait(0.1):
            producer.send("sent", b"v").result(60)


@pytest.fixture(scope="module")
def registry(cluster: str) -> Iterator[str]:
    """The address of a registry with two versions of a subject, and with registered records."""
    with running_registry(cluster) as server, SchemaRegistryClient(server.url) as client:
        client.register_schema("bills-value", Schema(json.dumps(BILL)))
        newer = {**BILL, "fields": [*BILL["fields"], {"name": "note", "type": "string", "default": ""}]}
        client.register_schema("scripts-value", Schema(json.dumps({**BILL, "doc": SCRIPT})))
        write = AvroSerializer(client, json.dumps(newer))
        with Producer(bootstrap_servers=cluster, value_serializer=write) as producer:
            producer.send("bills", {"id": 7, "amount": 12.5, "note": SCRIPT}, partition=0).result(60)
        with Producer(bootstrap_servers=cluster) as producer:
            producer.send("bills", b"\0\0\0\0\1?", partition=0).result(60)
        yield server.url


@pytest.fixture(scope="module")
def console(cluster: str, traces: Path, writing: Producer, reading: str, sending: str, registry: str) -> Iterator[str]:
    """The address of the console for that cluster."""
    schemas = ConsoleRegistry(SchemaRegistryClient({**LIMITS, "url": registry}))
    with browser_of(cluster, str(traces), Pipelines(), schemas) as asking:
        yield f"http://{asking.host}/"


def kept(page: Page, name: str) -> None:
    """Save the picture for the documentation, if requested."""
    if PICTURES and name in IN_DOCS:
        page.evaluate("document.activeElement.blur()")
        page.screenshot(path=Path(PICTURES) / f"{name}.png", animations="disabled")


def shows(page: Page, place: str, heading: str) -> None:
    page.evaluate("place => { location.hash = place; }", place)
    expect(page.locator("h1")).to_have_text(heading)
    expect(page.locator("#page[aria-busy]")).to_have_count(0)


def looked_into(page: Page) -> None:
    shows(page, "#/xray", "X-ray")
    page.get_by_role("link", name="eyes").click()
    expect(page.locator("h1")).to_have_text("X-ray of eyes")
    expect(page.locator(".states .on")).to_have_text("stable")


def looked_into_producer(page: Page) -> None:
    shows(page, "#/xray", "X-ray")
    page.get_by_role("link", name="hands").click()
    expect(page.locator("h1")).to_have_text("X-ray of hands")
    page.get_by_label("every event").check()
    expect(page.locator(".events li", has_text="acknowledged after").first).to_be_visible()
    expect(page.get_by_label("Sender")).to_contain_text("records acknowledged in the last second")


def looked_into_broker(page: Page) -> None:
    shows(page, "#/xray", "X-ray")
    page.get_by_role("link", name="broker 1").click()
    expect(page.locator("h1")).to_have_text("X-ray of broker 1")
    groups = page.get_by_label("GroupCoordinator")
    expect(groups).to_contain_text("looked-at")
    expect(groups.locator(".state").first).to_be_visible()
    expect(page.get_by_label("Purgatory")).to_contain_text("Fetch")
    expect(page.get_by_label("LogManager").locator(".active").first).to_be_visible()
    expect(page.get_by_label("Requests")).to_contain_text("Produce")


def brokers_with_their_answers(page: Page) -> None:
    shows(page, "#/brokers", "Brokers")
    expect(page.get_by_role("heading", name="Latencies of broker 1")).to_be_visible()
    expect(page.locator("table", has_text="answers")).to_contain_text("Produce")
    expect(page.locator("table").last).to_contain_text("hands")


def clients_that_push(page: Page) -> None:
    """Two clients push every second; the page is reloaded until both are listed."""
    for _ in range(ATTEMPTS):
        shows(page, "#/clients", "Clients")
        if page.get_by_role("link", name="hands").count() and page.get_by_role("link", name="eyes").count():
            return
        shows(page, "#/groups", "Groups")
    raise AssertionError(page.locator("main").inner_text())


def client_that_pushes(page: Page) -> None:
    clients_that_push(page)
    page.get_by_role("link", name="hands").click()
    expect(page.locator("h1")).to_have_text("hands")
    expect(page.locator("main")).to_contain_text("producer record send total")


def registered_records(page: Page) -> None:
    shows(page, "#/topic/bills", "bills")
    page.get_by_role("button", name="Read", exact=True).click()
    expect(page.get_by_text(re.compile("Avro, schema [0-9]+"))).to_be_visible()
    expect(page.get_by_text("not decoded: the value cannot be read with schema")).to_be_visible()


PAGES: dict[str, Callable[[Page], None]] = {
    "overview": lambda page: shows(page, "#/overview", "Overview"),
    "topics": lambda page: shows(page, "#/topics", "Topics"),
    "topic": lambda page: shows(page, "#/topic/orders", "orders"),
    "groups": lambda page: shows(page, "#/groups", "Groups"),
    "group": lambda page: shows(page, "#/group/billing", "billing"),
    "transactions": lambda page: shows(page, "#/transactions", "Transactions"),
    "transaction": lambda page: shows(page, "#/transaction/bills-1", "bills-1"),
    "schemas": lambda page: shows(page, "#/schemas", "Schemas"),
    "schema": lambda page: shows(page, "#/schema/bills-value", "bills-value"),
    "records": registered_records,
    "pipelines": lambda page: shows(page, "#/pipelines", "Pipelines"),
    "brokers": brokers_with_their_answers,
    "clients": clients_that_push,
    "client": client_that_pushes,
    "xray": lambda page: shows(page, "#/xray", "X-ray"),
    "xray-consumer": looked_into,
    "xray-producer": looked_into_producer,
    "xray-broker": looked_into_broker,
    "tour": lambda page: shows(page, "#/tour", "Tour"),
}


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look.name)
def test_every_page_can_be_read_on_every_screen(browser: Browser, console: str, look: Look) -> None:
    with page_of(browser, console, look) as page:
        wrong = {}
        for name, go in PAGES.items():
            go(page)
            wrong[name] = audited(page)
            kept(page, f"console-{name}-{look.name}")
        assert {name: found for name, found in wrong.items() if found} == {}


def test_a_schema_is_checked_on_the_page_of_its_subject(browser: Browser, console: str) -> None:
    with page_of(browser, console) as page:
        shows(page, "#/schemas", "Schemas")
        page.get_by_role("link", name="bills-value").click()
        expect(page.get_by_label("difference")).to_contain_text('+      "name": "note",')
        page.locator("textarea[name=schema]").fill('"int"')
        page.get_by_role("button", name="Check", exact=True).click()
        expect(page.get_by_role("status")).to_have_text("not compatible with bills-value (BACKWARD)")
        expect(page.locator("main li").first).to_contain_text("TYPE_MISMATCH")
        assert audited(page) == []
        page.get_by_role("link", name="1", exact=True).click()
        expect(page.locator("h2").first).to_contain_text("Version 1, id")
        expect(page.get_by_label("difference")).to_have_count(0)
        shows(page, "#/schema/scripts-value", "scripts-value")
        expect(page.get_by_label("schema", exact=True).first).to_contain_text(SCRIPT.replace('"', '\\"'))
        assert page.title() == "Ottla console"


def test_a_page_that_is_left_during_a_request_shows_no_error(browser: Browser, console: str) -> None:
    with page_of(browser, console) as page:
        shows(page, "#/xray", "X-ray")
        page.route("**/api/traced?*", lambda route: None)  # the request never receives a response
        with page.expect_request("**/api/traced?*"):
            page.get_by_role("link", name="eyes").click()
        shows(page, "#/topics", "Topics")
        expect(page.locator("#said")).to_have_text("")


def asked_for_groups(page: Page) -> list[Route]:
    """Navigate from the topics to the groups. The response is delayed until the first returned route continues."""
    asked: list[Route] = []
    shows(page, "#/topics", "Topics")
    page.route("**/api/groups?*", lambda route: asked.append(route))
    page.get_by_role("link", name="Groups").click()
    expect(page.locator("h1")).to_have_text("Groups")
    expect(page.locator("#page[aria-busy]")).to_have_text("Groupsloading …")
    return asked


def test_the_previous_page_is_replaced_during_the_request(browser: Browser, console: str) -> None:
    with page_of(browser, console) as page:
        asked_for_groups(page)[0].continue_()
        expect(page.get_by_role("link", name="billing")).to_be_visible()
        expect(page.locator("#page[aria-busy]")).to_have_count(0)


def test_offsets_of_a_group_are_reset_only_after_a_preview(browser: Browser, console: str, cluster: str) -> None:
    with Consumer(bootstrap_servers=cluster, group_id="moved") as consumer:
        consumer.commit({TopicPartition("scripts", 0): 1})
    with page_of(browser, console) as page, Admin(bootstrap_servers=cluster) as admin:

        def committed() -> int:
            return admin.list_consumer_group_offsets("moved")[TopicPartition("scripts", 0)].offset

        shows(page, "#/group/moved", "moved")
        expect(page.get_by_role("button", name="Move", exact=True)).to_have_count(0)
        page.get_by_role("button", name="Preview", exact=True).click()
        expect(page.get_by_text("1 records would be read again, 0 skipped.")).to_be_visible()
        assert committed() == 1
        assert audited(page) == []
        kept(page, "console-preview-light-1280")
        page.get_by_role("button", name="Move", exact=True).click()
        expect(page.get_by_role("status")).to_have_text("moved continues at the earliest offsets of scripts")
        expect(page.get_by_role("button", name="Move", exact=True)).to_have_count(0)
        assert committed() == 0


def test_the_latest_records_of_all_partitions_are_shown_the_newest_first(browser: Browser, console: str) -> None:
    with page_of(browser, console) as page:
        shows(page, "#/topic/orders", "orders")
        page.get_by_label("at most").fill("4")
        page.get_by_role("button", name="Read", exact=True).click()
        expect(page.get_by_role("status")).to_contain_text("records read")
        times = page.locator("table", has_text="time (UTC)").locator("tbody tr td:nth-child(3)").all_inner_texts()
        assert len(times) == 4
        assert times == sorted(times, reverse=True)


def test_the_focus_stays_where_the_keyboard_moved_it_while_a_page_loads(browser: Browser, console: str) -> None:
    with page_of(browser, console) as page:
        asked = asked_for_groups(page)
        tab_to(page, "link", "Brokers")
        asked[0].continue_()
        expect(page.get_by_role("link", name="billing")).to_be_visible()
        expect(page.get_by_role("link", name="Brokers", exact=True)).to_be_focused()


def test_one_broker_is_not_shown_as_several(browser: Browser, console: str) -> None:
    with page_of(browser, console) as page:
        shows(page, "#/overview", "Overview")
        expect(page.locator(".figures li").first).to_have_text("1broker")


def tab_to(page: Page, role: str, name: str) -> None:
    """Press Tab until the element has the focus, and check that the focus is visible."""
    wanted = page.get_by_role(role, name=name, exact=True)  # type: ignore[arg-type]
    expect(wanted).to_be_visible()
    for _ in range(200):
        page.keyboard.press("Tab")
        if wanted.evaluate("node => node === document.activeElement"):
            assert wanted.evaluate("node => getComputedStyle(node).outlineStyle") == "solid"
            return
    raise AssertionError(f"no Tab leads to the {role} {name!r}")


def test_a_topic_is_created_written_read_and_deleted_by_keyboard_alone(browser: Browser, console: str) -> None:
    with page_of(browser, console) as page:
        expect(page.locator("h1")).to_have_text("Overview")
        tab_to(page, "link", "Topics")
        page.keyboard.press("Enter")
        tab_to(page, "textbox", "name")
        page.keyboard.type("typed")
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_have_text("typed")
        tab_to(page, "textbox", "value")
        page.keyboard.type('{"by": "keyboard"}')
        tab_to(page, "button", "Produce")
        page.keyboard.press("Enter")
        expect(page.get_by_role("status")).to_have_text("written at offset 0 of partition 0")
        page.evaluate("document.getElementById('page').focus()")
        tab_to(page, "textbox", "contains")
        page.keyboard.type("keyboard")
        page.keyboard.press("Enter")
        expect(page.get_by_role("status")).to_have_text("1 of 1 records read")
        tab_to(page, "textbox", "the topic's name, to confirm")
        page.keyboard.type("another")
        page.keyboard.press("Enter")
        expect(page.get_by_role("status")).to_have_text("the name is not typed: nothing was deleted")
        page.keyboard.press("Control+A")
        page.keyboard.type("typed")
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_have_text("Topics")
        expect(page.get_by_role("link", name="typed")).to_have_count(0)


def test_dead_letters_are_sent_again_by_keyboard(browser: Browser, console: str) -> None:
    with page_of(browser, console) as page:
        shows(page, "#/pipelines", "Pipelines")
        letters = page.locator("tbody tr", has_text="orders-to-postgres").locator("td").nth(3)
        expect(letters).to_have_text("2")
        tab_to(page, "button", "Send again")
        page.keyboard.press("Enter")
        expect(page.get_by_role("status")).to_have_text("orders-to-postgres: 2 sent again")
        expect(letters).to_have_text("0")


def read_records(page: Page, topic: str) -> None:
    shows(page, f"#/topic/{topic}", topic)
    page.locator("select[name=start]").select_option("earliest")
    page.get_by_role("button", name="Read", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text("records read")


@pytest.mark.parametrize("look", [WIDE, NARROW], ids=lambda look: look.name)
def test_a_record_with_a_script_is_shown_and_not_run(browser: Browser, console: str, look: Look) -> None:
    with page_of(browser, console, look) as page:
        read_records(page, "scripts")
        expect(page.locator("pre").first).to_have_text(SCRIPT)
        assert page.title() == "Ottla console"
        assert audited(page) == []


@pytest.mark.parametrize("look", [WIDE, NARROW], ids=lambda look: look.name)
def test_the_first_part_of_a_record_of_5_mb_is_shown(browser: Browser, console: str, look: Look) -> None:
    with page_of(browser, console, look) as page:
        read_records(page, "large")
        cell = page.locator("td", has=page.locator("pre"))
        expect(cell).to_contain_text(f"the first part of {LARGE_BYTES + 12} bytes")
        assert len(cell.inner_text()) < 70_000
        assert audited(page) == []


def test_the_path_of_a_record_is_paused_stepped_saved_and_replayed(
    browser: Browser, console: str, cluster: str, tmp_path: Path
) -> None:
    with page_of(browser, console) as page:
        looked_into(page)
        with Producer(bootstrap_servers=cluster) as producer:
            producer.send("orders", b"on its way").result(60)
        page.get_by_label("every event").check()
        expect(page.locator(".events")).to_contain_text("returned 1 of orders-")
        expect(page.locator(".events")).to_contain_text("broker 1: Fetch of eyes waits for")
        expect(page.locator(".at-broker").first).to_contain_text("waits at broker 1 for")
        page.get_by_role("button", name="Pause").click()
        clock = page.locator(".clock")
        expect(page.get_by_role("button", name="Continue")).to_have_attribute("aria-pressed", "true")
        page.get_by_role("button", name="Step back").click()
        expect(clock).to_contain_text("frames behind")
        with page.expect_download() as saved:
            page.get_by_role("button", name="Save as file").click()
        file = tmp_path / "xray.json"
        saved.value.save_as(file)
        shows(page, "#/xray", "X-ray")
        page.get_by_label("a saved file").set_input_files(file)
        expect(page.locator("h1")).to_have_text("X-ray of eyes")
        page.get_by_label("every event").check()
        expect(page.locator(".events")).to_contain_text("returned")


@pytest.mark.parametrize("look", [WIDE, NARROW], ids=lambda look: look.name)
def test_a_chapter_of_the_tour_is_played_by_keyboard_and_drawn(browser: Browser, console: str, look: Look) -> None:
    with page_of(browser, console, look) as page:
        shows(page, "#/tour/first-poll", "The first poll")
        tab_to(page, "button", "Begin")
        page.keyboard.press("Enter")
        steps = page.locator(".steps li")
        for step, state in enumerate(("unjoined", "stable", "stable"), 1):
            expect(steps).to_have_count(step)
            expect(page.locator(".states .on")).to_have_text(state)
            assert audited(page) == []
            if step == 3:
                kept(page, f"console-tour-{look.name}")
            page.get_by_role("button", name="Continue").press("Enter")
        expect(steps).to_have_count(4)
        page.get_by_role("button", name="Continue").press("Enter")
        expect(page.get_by_role("status")).to_have_text("the chapter has ended")
        assert audited(page) == []


def test_the_x_ray_is_read_in_korean_and_in_english_again(browser: Browser, console: str) -> None:
    with page_of(browser, console, NARROW._replace(language="ko-KR")) as page:
        shows(page, "#/xray", "엑스레이")
        page.get_by_role("link", name="eyes").click()
        expect(page.locator("h1")).to_have_text("엑스레이: eyes")
        page.locator("summary").first.click()
        expect(page.locator(".box details p").first).to_contain_text("한 번의 호출은 설정된 수까지만")
        assert page.evaluate("document.documentElement.lang") == "ko"
        assert audited(page) == []
        kept(page, "console-xray-korean")
        shows(page, "#/xray", "엑스레이")
        page.get_by_role("button", name="in English").click()
        expect(page.locator("h1")).to_have_text("X-ray")


def test_a_file_that_is_no_recording_is_reported_in_a_sentence(browser: Browser, console: str, tmp_path: Path) -> None:
    (tmp_path / "wrong.json").write_text('{"frames": [{}]}', encoding="utf-8")
    with page_of(browser, console) as page:
        shows(page, "#/xray", "X-ray")
        page.get_by_label("a saved file").set_input_files(tmp_path / "wrong.json")
        expect(page.get_by_role("status")).to_contain_text("this file is not a recording of the X-ray")


@contextmanager
def joined(address: str, group: str, members: int = MEMBERS) -> Iterator[None]:
    """Create a group with many members that only send heartbeats."""
    with Wire(address) as wire:
        for number in range(members):
            request = ConsumerGroupHeartbeatRequest(
                group,
                f"member-{number:03}",
                rebalance_timeout_ms=60_000,
                subscribed_topic_names=["orders"],
                topic_partitions=[],
            )
            assert wire.ask(request, 1).error_code == 0
        yield


@pytest.mark.parametrize("look", [WIDE, NARROW], ids=lambda look: look.name)
def test_a_group_of_500_members_is_shown_completely(browser: Browser, console: str, cluster: str, look: Look) -> None:
    with joined(cluster, f"crowd-{look.name}"), page_of(browser, console, look) as page:
        shows(page, f"#/group/crowd-{look.name}", f"crowd-{look.name}")
        expect(page.locator("table").last.locator("tbody tr")).to_have_count(MEMBERS)
        assert audited(page) == []


def test_a_group_whose_name_is_a_script_is_shown_and_not_run(browser: Browser, console: str, cluster: str) -> None:
    with joined(cluster, SCRIPT, 1), page_of(browser, console) as page:
        shows(page, "#/groups", "Groups")
        page.get_by_role("link", name=SCRIPT).click()
        expect(page.locator("h1")).to_have_text(SCRIPT)
        shows(page, "#/xray", "X-ray")
        page.get_by_role("link", name="broker 1").click()
        expect(page.get_by_label("GroupCoordinator")).to_contain_text(SCRIPT)
        assert page.title() == "Ottla console"
        assert audited(page) == []


def test_a_topic_that_is_deleted_while_it_is_shown_is_reported_as_deleted(
    browser: Browser, console: str, cluster: str
) -> None:
    with page_of(browser, console) as page, Admin(bootstrap_servers=cluster) as admin:
        admin.create_topics([NewTopic("short-lived", 1)])
        shows(page, "#/topic/short-lived", "short-lived")
        admin.delete_topics(["short-lived"])
        page.get_by_role("button", name="Read", exact=True).click()
        expect(page.get_by_role("status")).to_contain_text("there is no topic 'short-lived'")
        page.reload()
        expect(page.locator("h1")).to_have_text("The page could not be loaded")
        expect(page.locator("main")).to_contain_text("there is no topic 'short-lived'")
        assert audited(page) == []


def test_a_truncated_address_is_reported_as_unreadable(browser: Browser, console: str) -> None:
    with page_of(browser, console) as page:
        for address in ("#/topic/%", "#/topic/100%", "#/topic/a%2"):
            page.evaluate(f"location.hash = '{address}'")
            expect(page.locator("h1")).to_have_text("The page could not be loaded")
            expect(page.locator("main")).to_contain_text(address.rpartition("/")[2] + " in this address is invalid")
            assert audited(page) == []
            shows(page, "#/topics", "Topics")


def test_10_000_topics_are_found_by_name_a_hundred_a_page(browser: Browser) -> None:
    with Broker(process=True) as broker, browser_of(broker.bootstrap_servers) as asking:
        with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
            for first in range(0, TOPICS, 1000):
                admin.create_topics([NewTopic(f"t-{number:05}", 1) for number in range(first, first + 1000)])
        with page_of(browser, f"http://{asking.host}/", NARROW) as page:
            shows(page, "#/topics", "Topics")
            expect(page.locator("main")).to_contain_text(f"1 to 100 of {TOPICS}")
            assert audited(page) == []
            page.get_by_role("link", name="next »").click()
            expect(page.get_by_role("link", name="t-00100")).to_be_visible()
            page.get_by_label("name contains").fill("t-0999")
            page.keyboard.press("Enter")
            expect(page.locator("tbody tr")).to_have_count(10)
            shows(page, "#/overview", "Overview")
            expect(page.locator(".figures")).to_contain_text(str(TOPICS))


def test_a_broker_that_stops_is_reported_on_the_page_and_found_again(browser: Browser, tmp_path: Path) -> None:
    with Broker(tmp_path / "data", process=True) as broker, browser_of(broker.bootstrap_servers) as asking:
        address = broker.bootstrap_servers
        with page_of(browser, f"http://{asking.host}/") as page:
            expect(page.locator("h1")).to_have_text("Overview")
            broker.close()
            page.get_by_role("link", name="Groups").click()
            expect(page.locator("h1")).to_have_text("The page could not be loaded")
            expect(page.locator("main")).to_contain_text(address)
            assert audited(page) == []
            with Broker(tmp_path / "data", listen=address, process=True):
                page.reload()
                expect(page.locator("h1")).to_have_text("Groups")


def test_a_console_that_has_stopped_is_reported_on_the_page(browser: Browser, cluster: str) -> None:
    with browser_of(cluster) as asking:
        context = browser.new_context()
        page = context.new_page()
        page.goto(f"http://{asking.host}/#/topics")
        expect(page.locator("h1")).to_have_text("Topics")
    page.get_by_role("link", name="Groups").click()
    expect(page.locator("main")).to_contain_text("the console does not answer: check that `ottla console` is running")
    context.close()


def test_a_console_that_stops_under_a_live_page_replaces_the_previous_message(browser: Browser, cluster: str) -> None:
    context = browser.new_context()
    page = context.new_page()
    with browser_of(cluster, None, Pipelines()) as asking:
        page.goto(f"http://{asking.host}/#/pipelines")
        page.get_by_role("button", name="Pause").click()
        expect(page.get_by_role("status")).to_have_text("orders-to-postgres is paused")
    expect(page.get_by_role("status")).to_contain_text("the connection to the console was lost")
    context.close()
