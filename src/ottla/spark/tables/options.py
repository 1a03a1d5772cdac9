"""The options of Delta and Iceberg tables, with the names of delta-spark, Spark and pyiceberg.

They are read like those of topics (`ottla.spark.options`): case-insensitive, and each mistake is one sentence.
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
    """The argument of `save`, `start` and `load`: the folder of a Delta table, the name of an Iceberg table."""
    partition_by: tuple[str, ...] = ()
    """The partition columns of a new table, separated by commas. (Spark does not pass the columns of its method
    `partitionBy` to sources in Python.)
    """
    merge_schema: bool = False
    """Add columns that the table does not have, and write null to columns that the rows do not have."""
    compression: Compression = "zstd"
    """The compression of Parquet files."""
    target_file_size: Positive = 128 * 1024 * 1024
    """The size in bytes after which a task starts another file."""
    txn_app_id: str | None = None
    """For writes in `foreachBatch`: a name of this write that is the same in each batch. With `txnVersion`, a repeated
    write is skipped. Each write in a function needs its own name. Streams do this by themselves.
    """
    txn_version: AtLeastZero | None = None
    """The batch id passed to the function of `foreachBatch`; see `txnAppId`."""
    checkpoint_location: str | None = None
    """Set by Spark; the table stores the offsets of a batch from it."""


@settings
class DeltaOptions(TableOptions):
    """The options of `format("ottla_delta")`."""

    version_as_of: AtLeastZero | None = None
    """The version to read; the newest by default."""

    @property
    def folder(self) -> Path:
        return local_folder("path", self.path)


@settings
class IcebergOptions(TableOptions):
    """The options of `format("ottla_iceberg")`; the table is named `namespace.table`."""

    warehouse: str | None = None
    """The folder of the tables. Without other settings of a catalog, the catalog is the SQLite file `catalog.db` in it."""
    catalog_name: str = "default"
    """The catalog's name; settings for it in pyiceberg's own configuration apply too."""
    catalog: Mapping[str, str] = beside(default_factory=dict)
    """Settings of pyiceberg's catalog, given as `catalog.<name>`: `catalog.type`, `catalog.uri`, …"""
    snapshot_id: int | None = None
    """The snapshot to read; the newest by default."""

    def catalog_settings(self) -> dict[str, str]:
        settings = dict(self.catalog)
        if self.warehouse is not None:
            folder = local_folder("warehouse", self.warehouse)
            settings.setdefault("warehouse", f"file://{folder}")
            if not {"type", "uri"} & settings.keys():
                settings |= {"type": "sql", "uri": f"sqlite:///{folder / 'catalog.db'}"}
        return settings


def read_table_options(cls: type[T], given: Mapping[str, str]) -> T:
    """Return an instance of `cls`; ConfigError if an option is unknown, invalid or missing."""
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
    """Raise ConfigError for options that are missing or incomplete."""
    if not options.path:
        raise ConfigError("there is no table; pass it to save(…), start(…) or load(…)")
    if (options.txn_app_id is None) != (options.txn_version is None):
        raise ConfigError("option txnAppId needs txnVersion; give both or none")


def local_folder(option: str, text: str) -> Path:
    """Return the folder of a path or a `file:` address; ConfigError for other addresses."""
    address = urlsplit(text)  # not decoded: neither Spark nor pyiceberg write %20 for a space
    if address.scheme not in ("", "file") or address.netloc not in ("", "localhost"):
        raise ConfigError(
            f"option {option} = {text!r}: Ottla writes tables to folders, which may be mounted on all machines; "
            "give the path of a folder, or use the format's own connector"
        )
    return Path(
        text.split(":", 1)[1].removeprefix("//localhost").removeprefix("//") if address.scheme else text
    ).absolute()
