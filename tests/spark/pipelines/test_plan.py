"""The output of `ottla pipeline plan`: it contains no secret."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from pyspark.sql import SparkSession

from ottla.cli.pipelines.pipeline import plan_lines, plan_of
from ottla.pipelines.file.reading import checkpoints_of, read_text
from ottla.pipelines.manager.build import build
from ottla.pipelines.manager.state_directory import StateDirectory

TEXT = """
settings: {bootstrap.servers: "127.0.0.1:1", kafka: {ssl.keystore.password: "${env:SECRET}"}}
pipelines:
  one:
    source: {type: http, url: "http://user:${env:SECRET}@127.0.0.1:1/?token=${file:token}", schema: id bigint, headers: {a: "${env:SECRET}"}}
    transforms: [{type: InsertField, static.field: name, static.value: "${env:SECRET}"}]
    sink: {type: http, url: "http://127.0.0.1:1/?token=${file:token}", headers: {authorization: "Bearer ${env:SECRET}"}}
  two:
    source: {type: database, url: "sqlite:///shop.db", table: orders, incrementing: id}
    sink: {type: topic, topic: orders, kafka: {sasl.password: "${file:token}"}}
"""


def test_a_plan_has_no_secret_in_it(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t0ken\n")
    database = sqlite3.connect(tmp_path / "shop.db")
    database.execute("create table orders (id integer primary key not null, item text)")
    database.close()
    reads = read_text(TEXT.encode(), "shop.yaml", tmp_path, {"SECRET": "s3cret"})
    plans = [plan_of(build(read, spark), StateDirectory(checkpoints_of(read), read.name)) for read in reads]
    message = "\n".join([json.dumps(plans), *(line for plan in plans for line in plan_lines(plan))])
    assert all(text in message for text in ("http://127.0.0.1:1/", "topic orders", "item string"))
    assert not [secret for secret in ("s3cret", "t0ken") if secret in message]
