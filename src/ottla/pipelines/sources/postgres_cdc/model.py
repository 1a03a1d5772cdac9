"""The model of `type: postgres-cdc`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator
from pyspark.sql.types import StructType

from ottla.errors import ConfigError
from ottla.pipelines.address import without_secrets
from ottla.pipelines.databases.postgresql import Postgresql
from ottla.pipelines.databases.url import DatabaseUrl, database_of, scheme_of
from ottla.pipelines.feeds.feed import Feed
from ottla.pipelines.pipeline_context import PipelineContext
from ottla.pipelines.place import KeyMistake, of_key
from ottla.pipelines.sources.fed import FedSource, check_column_names
from ottla.pipelines.sources.postgres_cdc.captured import Captured
from ottla.pipelines.sources.postgres_cdc.change_feed import ChangeFeed, read_table_mark
from ottla.pipelines.sources.postgres_cdc.envelope import Envelope
from ottla.pipelines.sources.postgres_cdc.slot import Slot

SLOT_NAME = re.compile(r"[a-z0-9_]{1,63}")


class PostgresCdcSource(FedSource):
    """The rows of a table, followed by each change in the order in which transactions were committed."""

    type: Literal["postgres-cdc"]
    url: DatabaseUrl
    """`postgresql://user:${env:PASSWORD}@host/name`; the user has the REPLICATION attribute and owns the table."""
    table: str
    """The table, with its schema if that is not the default one."""
    envelope: bool = True
    """`true`: rows are changes in Debezium's envelope: `before`, `after`, `op`, `source`, `ts_ms`. `false`: the rows of
    the table, and a tombstone for a deleted row.
    """
    tombstones_on_delete: bool = Field(default=True, alias="tombstones.on.delete")
    """Write a tombstone after a deletion in an envelope; compaction needs it."""
    slot_name: str | None = Field(default=None, alias="slot.name")
    """The replication slot; by default `ottla_` and the pipeline's name."""
    publication_name: str | None = Field(default=None, alias="publication.name")
    """The publication, which is created if it does not exist; by default with the name of the slot."""
    batch_max_rows: int = Field(default=100_000, ge=1, alias="batch.max.rows")
    """The number of changes after which no further transaction is added to a batch."""

    @field_validator("url")
    @classmethod
    def url_is_of_postgresql(cls, text: str) -> str:
        if not text.startswith("${") and scheme_of(text) != "postgresql":
            raise ValueError(
                "changes can only be read from PostgreSQL; write postgresql://user@host/name, or use type: database"
            )
        return text

    @field_validator("slot_name")
    @classmethod
    def slot_can_be_named_so(cls, name: str | None) -> str | None:
        if name is not None and not SLOT_NAME.fullmatch(name):
            raise ValueError(
                f"{name!r} is not a valid slot name: use small letters, digits and underscores, at most 63"
            )
        return name

    def describe(self) -> str:
        return f"changes of table {self.table} of {without_secrets(self.url)}"

    def identity(self) -> str:
        return f"{self.describe()}{'' if self.envelope else ', as rows'}"

    def try_to_open(self, context: PipelineContext) -> None:
        with of_key("url"):
            self.check_server(context)

    def check_server(self, context: PipelineContext) -> None:
        slot = self.slot(context)
        connection = slot.database.open()
        try:
            with slot.database.translated_errors():
                self.checked(slot, connection, context.home)
        finally:
            connection.close()

    def feed(self, context: PipelineContext) -> tuple[Feed, StructType]:
        with of_key("url"):
            slot = self.slot(context)
            connection = slot.database.open()
        try:
            with slot.database.translated_errors():
                with of_key("url"):
                    slot.check(connection)
                captured = self.checked(slot, connection, context.home)
        finally:
            connection.close()
        if not self.envelope:
            check_column_names(f"table {captured.table.name}", captured.table.schema())
        envelope = Envelope(
            captured.table,
            captured.schema,
            context.name,
            captured.database,
            self.envelope,
            self.tombstones_on_delete,
            version("ottla"),
        )
        return ChangeFeed(
            slot, captured, envelope, context.home, self.batch_max_rows, context.dead_letters
        ), envelope.columns()

    def checked(self, slot: Slot, connection: Any, home: Path) -> Captured:
        """Return the table as captured; ConfigError if its changes cannot be read as configured."""
        with of_key("table"):
            captured = slot.describe_captured(connection)
            recorded = read_table_mark(home, slot)
            loss = None if recorded is None else captured.loss_since(recorded)
            if loss is not None:
                raise ConfigError(loss)
            if captured.publication is None:
                captured.ensure_identity()
        if captured.publication is not None:
            with of_key("publication.name"):
                captured.ensure_published()
        if not self.envelope and not captured.table.key:
            raise KeyMistake(
                "envelope",
                f"table {captured.table.name} has no primary key to identify its rows; set envelope: true",
            )
        return captured

    def slot(self, context: PipelineContext) -> Slot:
        database = database_of(context.resolve_address(self.url), context.folder)
        if not isinstance(database, Postgresql):
            raise ConfigError(
                "changes can only be read from PostgreSQL; write postgresql://user@host/name, or use type: database"
            )
        name = self.slot_name or f"ottla_{re.sub('[^a-z0-9_]', '_', context.reader_name.lower())}"[:63]
        return Slot(database, name, self.publication_name or name, context.resolve(self.table))

    def find_leftovers(self, context: PipelineContext) -> Iterator[str]:
        """Describe the slot and the publication on the server that belong to this pipeline."""
        with self.connected(context) as (slot, connection):
            held = slot.held_back_bytes(connection)
            if held is not None:
                yield f"slot {slot.name} of {slot.database.name}, for which the server keeps {held / 1e6:.1f} MB of its log"
            if slot.has_publication(connection):
                yield f"publication {slot.publication} of {slot.database.name}"

    def clean(self, context: PipelineContext) -> None:
        """Drop the slot and the publication."""
        with self.connected(context) as (slot, connection):
            slot.drop(connection)
            slot.drop_publication(connection)

    def connected(self, context: PipelineContext) -> Any:
        return self.slot(context).connection()
