"""The console at an Apache Kafka broker."""

from __future__ import annotations

from tests.console.conftest import browser_of


def test_topics_records_and_groups_of_apache_kafka_are_shown_and_changed(apache_kafka: str) -> None:
    with browser_of(apache_kafka) as browser:
        made = browser.order("create-topic", name="console", partitions=2, configs={"retention.ms": "3600000"})
        assert made == (200, None)
        written = browser.order("produce", topic="console", key="k", value='{"n": 1}', partition=1)
        assert written == (200, {"partition": 1, "offset": 0})
        (record,) = browser.ask("records", topic="console", start="earliest", text="n")["records"]
        assert (record["key"]["text"], record["value"]["form"]) == ("k", "json")
        assert browser.order("set-config", topic="console", name="retention.ms", value="60000") == (200, None)
        seen = browser.ask("topic", name="console")
        assert ("retention.ms", "60000") in {(c["name"], c["value"]) for c in seen["configs"]}
        assert [p["end"] for p in seen["partitions"]] == [0, 1]
        rows = browser.ask("preview-reset", group="of-console", topic="console", to="earliest")["partitions"]
        assert [(row["offset"], row["new_offset"], row["lag"]) for row in rows] == [(None, 0, 0), (None, 0, 1)]
        offsets = {str(row["partition"]): row["new_offset"] for row in rows}
        assert browser.order("reset-offsets", group="of-console", topic="console", offsets=offsets) == (200, None)
        assert browser.ask("group", name="of-console")["lag"] == 1
        overview = browser.ask("overview")
        assert (len(overview["brokers"]), overview["without_leader"]) == (1, [])
        assert browser.order("delete-topic", name="console") == (200, None)
