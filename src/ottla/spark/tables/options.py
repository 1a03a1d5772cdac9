"""Options of Delta and Iceberg tables, under the names that delta-spark, Spark and pyiceberg use.

Read as those of topics are (`ottla.spark.options`): any case of letters, one sentence for what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

from ottla.config import convert, options_of
from ottla.errors import ConfigError
from ottla.settings_class import beside, settings
from ottla.spark.options import SPARKS_OWN, AtLeastZero, Positive, spelling, unknown_option

T = TypeVar("T", "DeltaOptions", "IcebergOptions")

CATALOG = "catalog."
Compression = Literal["zstd", "snappy", "gzip", "lz4", "none"]


@settings
class TableOptions:
    path: str = ""
    """What `save`, `start` and `load` are given: the folder of a Delta table, the name of an Iceberg table."""
    partition_by: tuple[str, ...] = ()
    """Columns that a new table is partitioned by, separated by commas. (Spark keeps what is given to its method
    `partitionBy` from sources written in Python.)"""
    merge_schema: bool = False
    """Whether columns that the table does not have are added to it, and columns that the rows do not have are null."""
    compression: Compression = "zstd"
    """How Parquet files are compressed."""
    target_file_size: Positive = 128 * 1024 * 1024
    """Bytes after which a task begins another file."""
    txn_app_id: str | None = None
    """For writes in `foreachBatch`: a name of this write, the same at each batch; with `txnVersion`, a write that is
    done again is left out. Each write of one function needs a name of its own. Streams do so by themselves."""
    txn_version: AtLeastZero | None = None
    """The batch id that `foreachBatch` was called with; see `txnAppId`."""
    checkpoint_location: str | None = None
    """Spark's own; the table remembers which offsets a batch had."""


@settings
class DeltaOptions(TableOptions):
    """What `format("ottla_delta")` takes."""

    version_as_of: AtLeastZero | None = None
    """The version to read; without it, the newest."""

    @property
    def folder(self) -> Path:
        return local_folder("path", self.path)


@settings
class IcebergOptions(TableOptions):
    """What `format("ottla_iceberg")` takes; the table is named `namespace.table`."""

    warehouse: str | None = None
    """The folder of the tables. Without other settings of a catalog, it is SQLite's file `catalog.db` in there."""
    catalog_name: str = "default"
    """The catalog's name; what pyiceberg's own configuration says of it holds too."""
    catalog: Mapping[str, str] = beside(default_factory=dict)
    """Settings of pyiceberg's catalog, given as `catalog.<name>`: `catalog.type`, `catalog.uri`, …"""
    snapshot_id: int | None = None
    """The snapshot to read; without it, the newest."""

    def catalog_settings(self) -> dict[str, str]:
        settings = dict(self.catalog)
        if self.warehouse is not None:
            folder = local_folder("warehouse", self.warehouse)
            settings.setdefault("warehouse", f"file://{folder}")
            if not {"type", "uri"} & settings.keys():
                settings |= {"type": "sql", "uri": f"sqlite:///{folder / 'catalog.db'}"}
        return settings


def read_table_options(cls: type[T], given: Mapping[str, str]) -> T:
    """An instance of `cls`; ConfigError says what is unknown, malformed or missing."""
    table = {spelling(option.field).lower(): option for option in options_of(cls)}
    values: dict[str, Any] = {}
    for name, text in given.items():
        lower = name.lower()
        if lower.startswith(CATALOG):
            values.setdefault("catalog", {})[lower[len(CATALOG) :]] = text
        elif lower in table:
            values[table[lower].field] = convert(spelling(table[lower].field), text.strip(), table[lower].type)
        elif lower not in SPARKS_OWN:
            raise ConfigError(unknown_option(name, [spelling(known.field) for known in table.values()]))
    options = cls(**values)
    check(options)
    return options


def check(options: TableOptions) -> None:
    """ConfigError for what is missing, or given by half."""
    if not options.path:
        raise ConfigError("it is not said which table; give it to save(…), start(…) or load(…)")
    if (options.txn_app_id is None) != (options.txn_version is None):
        raise ConfigError("options txnAppId and txnVersion go together; give both or none")


def local_folder(option: str, text: str) -> Path:
    """The folder of a path or a `file:` address; ConfigError for other addresses."""
    address = urlsplit(text)  # taken apart only to be judged: neither Spark nor pyiceberg write %20 for a space
    if address.scheme not in ("", "file") or address.netloc not in ("", "localhost"):
        raise ConfigError(
            f"option {option} = {text!r}: Ottla writes tables in folders, also ones that all machines mount; "
            "give the path of one, or use the format's own connector"
        )
    return Path(
        text.split(":", 1)[1].removeprefix("//localhost").removeprefix("//") if address.scheme else text
    ).absolute()
