"""What the file says of a table whose changes are read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator
from pyspark.sql.types import StructType

from ottla.errors import ConfigError
from ottla.pipelines.address import shown
from ottla.pipelines.databases.postgresql import Postgresql
from ottla.pipelines.databases.url import DatabaseUrl, database_of, scheme_of
from ottla.pipelines.feeds.feed import Feed
from ottla.pipelines.place import KeyMistake, of_key
from ottla.pipelines.sources.fed import FedSource, not_beside
from ottla.pipelines.sources.postgres_cdc.captured import Captured
from ottla.pipelines.sources.postgres_cdc.change_feed import ChangeFeed, noted_table
from ottla.pipelines.sources.postgres_cdc.envelope import Envelope
from ottla.pipelines.sources.postgres_cdc.slot import Slot
from ottla.pipelines.surroundings import Surroundings

SLOT_NAME = re.compile(r"[a-z0-9_]{1,63}")


class PostgresCdcSource(FedSource):
    """The rows of a table, and then each change of them, in the order in which transactions were committed."""

    type: Literal["postgres-cdc"]
    url: DatabaseUrl
    """`postgresql://user:${env:PASSWORD}@host/name`; the user may replicate and owns the table."""
    table: str
    """The table, with its schema where that is not the usual one."""
    envelope: bool = True
    """`true`: rows are changes as Debezium has them, `before`, `after`, `op`, `source`, `ts_ms`. `false`: the rows of the table,
    a row that is gone as a tombstone."""
    tombstones_on_delete: bool = Field(default=True, alias="tombstones.on.delete")
    """Whether a deletion in an envelope is followed by a tombstone, which compaction needs."""
    slot_name: str | None = Field(default=None, alias="slot.name")
    """The replication slot, `ottla_` and the pipeline's name by default."""
    publication_name: str | None = Field(default=None, alias="publication.name")
    """The publication, which is made where there is none; named as the slot by default."""
    batch_max_rows: int = Field(default=100_000, ge=1, alias="batch.max.rows")
    """After how many changes no further transaction belongs to a batch."""

    @field_validator("url")
    @classmethod
    def url_is_of_postgresql(cls, text: str) -> str:
        if not text.startswith("${") and scheme_of(text) != "postgresql":
            raise ValueError(
                "changes are read from PostgreSQL alone; write postgresql://user@host/name, or use type: database"
            )
        return text

    @field_validator("slot_name")
    @classmethod
    def slot_can_be_named_so(cls, name: str | None) -> str | None:
        if name is not None and not SLOT_NAME.fullmatch(name):
            raise ValueError(
                f"{name!r} is no name of a slot, which has small letters, digits and underscores, 63 at most"
            )
        return name

    def describe(self) -> str:
        return f"changes of table {self.table} of {shown(self.url)}"

    def identity(self) -> str:
        return f"{self.describe()}{'' if self.envelope else ', as rows'}"

    def try_to_open(self, around: Surroundings) -> None:
        with of_key("url"):
            self.check_server(around)

    def check_server(self, around: Surroundings) -> None:
        slot = self.slot(around)
        connection = slot.database.open()
        try:
            with slot.database.telling():
                self.checked(slot, connection, around.home)
        finally:
            connection.close()

    def feed(self, around: Surroundings) -> tuple[Feed, StructType]:
        with of_key("url"):
            slot = self.slot(around)
            connection = slot.database.open()
        try:
            with slot.database.telling():
                with of_key("url"):
                    slot.check(connection)
                captured = self.checked(slot, connection, around.home)
        finally:
            connection.close()
        if not self.envelope:
            not_beside(f"table {captured.table.name}", captured.table.schema())
        envelope = Envelope(
            captured.table,
            captured.schema,
            around.name,
            captured.database,
            self.envelope,
            self.tombstones_on_delete,
            version("ottla"),
        )
        return ChangeFeed(
            slot, captured, envelope, around.home, self.batch_max_rows, around.letters
        ), envelope.columns()

    def checked(self, slot: Slot, connection: Any, home: Path) -> Captured:
        """Return the table as it is captured; ConfigError where its changes cannot be read as the file asks."""
        with of_key("table"):
            captured = slot.captured(connection)
            noted = noted_table(home, slot)
            loss = None if noted is None else captured.loss_since(noted)
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
                f"table {captured.table.name} has no primary key, by which its rows are told apart; set envelope: true",
            )
        return captured

    def slot(self, around: Surroundings) -> Slot:
        database = database_of(around.resolve_address(self.url), around.folder)
        if not isinstance(database, Postgresql):
            raise ConfigError(
                "changes are read from PostgreSQL alone; write postgresql://user@host/name, or use type: database"
            )
        name = self.slot_name or f"ottla_{re.sub('[^a-z0-9_]', '_', around.reader_name.lower())}"[:63]
        return Slot(database, name, self.publication_name or name, around.resolve(self.table))

    def left_behind(self, around: Surroundings) -> Iterator[str]:
        """What there is on the server for this pipeline."""
        with self.asked(around) as (slot, connection):
            held = slot.held_back(connection)
            if held is not None:
                yield f"slot {slot.name} of {slot.database.name}, for which the server keeps {held / 1e6:.1f} MB of its log"
            if slot.has_publication(connection):
                yield f"publication {slot.publication} of {slot.database.name}"

    def clean(self, around: Surroundings) -> None:
        """Take it away."""
        with self.asked(around) as (slot, connection):
            slot.drop(connection)
            slot.drop_publication(connection)

    def asked(self, around: Surroundings) -> Any:
        return self.slot(around).asked()
