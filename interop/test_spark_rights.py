"""Spark with ACLs, at Apache Kafka and at our broker.

The rules of docs/spark.md are sufficient, and an unauthorized operation is reported as one sentence in the driver.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from ottla import Admin, Broker, NewTopic, Producer
from ottla.client.admin import AclBinding
from rivals import apache_kafka as rival
from tests.cli.conftest import ottla

pytestmark = pytest.mark.usefixtures("quick_drivers")

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
PROTOCOLS = "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
USERS = ("etl", "nobody", "knows", "writes")
LOGINS = " ".join([MODULE, *(f'user_{user}="p"' for user in USERS)]) + ";"
SETTINGS = {
    "authorizer.class.name": AUTHORIZER,
    "super.users": "User:ANONYMOUS",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": LOGINS,
}
PAGE = Path(__file__).parents[1] / "docs" / "spark.md"
TOPICS = ("orders", "totals")
ROWS = 10

JOB = """
import json, sys
import ottla.spark
from pyspark.sql import SparkSession
cases, folder = json.loads(sys.argv[1]), sys.argv[2]
spark = (
    SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
    .config("spark.sql.adaptive.streaming.stateless.enabled", "false").getOrCreate()
)
row = spark.sql("select cast('a' as binary) as value")

def read(options, place):
    return spark.read.format("ottla").options(**options).option("subscribe", "orders").load().count()

def look(options, place):
    return spark.read.format("ottla").options(**options).option("subscribePattern", "ord.*").load().count()

def write(options, place):
    row.write.mode("append").format("ottla").options(**options).option("topic", "totals").save()

def write_once(options, place):
    write({**options, "deliveryGuarantee": "exactly_once"}, place)

def copy(options, place):
    rows = spark.readStream.format("ottla").options(**options).option("subscribe", "orders")
    query = (
        rows.option("startingOffsets", "earliest").load().select("value").writeStream.format("ottla")
        .options(**options).option("topic", "totals").option("deliveryGuarantee", "exactly_once")
        .option("checkpointLocation", place).trigger(availableNow=True).start()
    )
    query.awaitTermination()

for number, (name, way, options) in enumerate(cases):
    try:
        message = str(globals()[way](options, f"{folder}/{number}"))
    except Exception as error:
        message = str(error)
    print(json.dumps([name, message]), flush=True)
spark.stop()
"""


@pytest.fixture(scope="module")
def sides() -> Iterator[dict[str, tuple[str, str]]]:
    """The addresses of each broker: without login for the preparation, and with login."""
    rival.fetch()
    with ExitStack() as undo:
        theirs = undo.enter_context(
            rival.apache_kafka(
                SETTINGS | {"listener.security.protocol.map": f"CONTROLLER:PLAINTEXT,{PROTOCOLS}"},
                listeners=["SASL_PLAINTEXT"],
            )
        )
        ours = undo.enter_context(
            Broker(listen="PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0", process=True, **SETTINGS)
        )
        found = {
            "Apache Kafka": (theirs.bootstrap_servers, theirs.listeners["SASL_PLAINTEXT"]),
            "Ottla": (ours.addresses["PLAINTEXT"], ours.addresses["SASL_PLAINTEXT"]),
        }
        for plain, _ in found.values():
            set_up(plain)
        yield found


def set_up(plain: str) -> None:
    """Create topics with rows, the rules of the page, and the rules of users with fewer rights."""
    with Admin(bootstrap_servers=plain) as admin, Producer(bootstrap_servers=plain) as producer:
        admin.create_topics([NewTopic(topic, 1, 1) for topic in TOPICS])
        for each in [producer.send("orders", b"%d" % number) for number in range(ROWS)]:
            each.result(60)
        admin.create_acls(
            [
                AclBinding("topic", "orders", "User:knows", "describe"),
                AclBinding("topic", "totals", "User:knows", "describe"),
                AclBinding("topic", "totals", "User:writes", "write"),
            ]
        )
    for command in commands():
        assert ottla(*command, "--bootstrap-server", plain).status == 0


def commands() -> list[list[str]]:
    """Return the commands of the page for the user `etl`."""
    (block,) = re.findall(r"^```\n((?:ottla acls .*\n)+)```$", PAGE.read_text(), re.MULTILINE)
    return [shlex.split(line)[1:] for line in block.splitlines()]


def options(address: str, user: str) -> dict[str, Any]:
    return {
        "kafka.bootstrap.servers": address,
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.username": user,
        "kafka.sasl.password": "p",
    }


CASES = {
    ("look", "etl"): str(ROWS),
    ("copy", "etl"): "None",
    ("write_once", "etl"): "None",
    ("read", "nobody"): "DESCRIBE of topic 'orders'",
    ("look", "nobody"): "0",
    (
        "read",
        "knows",
    ): "fetch of orders-0 at offset 0; no rule (ACL) allows this to the client's user: create one for the topic",
    ("write", "knows"): "this client's user may write to no topic: add an ACL for WRITE on the topic",
    ("write", "writes"): "None",
    ("write_once", "writes"): "create one for the transactional.id, or a prefix of it",
}
"""The expected result by operation and user."""


def test_the_documented_rules_are_sufficient_and_unauthorized_operations_are_a_one_line_error(
    sides: dict[str, tuple[str, str]], tmp_path: Path
) -> None:
    cases = [
        ((side, way, user), way, options(login, user)) for side, (_, login) in sides.items() for way, user in CASES
    ]
    job = tmp_path / "job.py"
    job.write_text(JOB)
    command = [sys.executable, str(job), json.dumps(cases), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    printed = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert len(printed) == len(cases), done.stderr[-3000:]
    for (side, way, user), sentence in printed:
        wanted = CASES[way, user]
        assert (wanted in sentence) if " " in wanted else (sentence == wanted), (side, way, user, sentence)
        assert "Traceback" not in sentence
    for _, login in sides.values():
        assert (
            f"option subscribePattern = ord.*: no topic at {login} matches, because this user can see none"
            in done.stderr
        )
