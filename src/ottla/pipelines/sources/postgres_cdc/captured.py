"""The captured table as described by the catalogue and the publication, and its changes since the snapshot.

The log has less than the table: no generated columns, no columns outside the publication's column list, no rows outside
its row filter, and of a deleted row only the columns of the replica identity. The snapshot therefore reads exactly the
data that the publication sends. Everything that a later change could not repair is part of the position: the table's
oid, its key, and the identity of its entry in the publication. PostgreSQL creates a new entry whenever a table is
removed and added again, or gets another row filter or column list. So a change that was reverted before the next check
is detected too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ottla.errors import ConfigError
from ottla.pipelines.databases.postgresql import Postgresql
from ottla.pipelines.databases.table import Table, missing_table

WITH_COLUMN_LISTS = 150000
"""The version of PostgreSQL from which publications have column lists, row filters and schemas."""
WITH_GENERATED = 180000
"""The version from which a publication may send generated columns."""
START_AGAIN = "start again under another name, with a new snapshot"

RELATION = """
select c.oid::bigint, n.nspname::text, c.relname::text, current_database()::text, c.relkind::text, c.relpersistence::text,
       c.relreplident::text,
       array(select a.attname::text from pg_attribute a
             where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
             and coalesce(to_jsonb(a) ->> 'attgenerated', '') <> ''),
       array(select a.attname::text from pg_index i join pg_attribute a
             on a.attrelid = i.indrelid and array_position(i.indkey::int2[], a.attnum) < i.indnkeyatts
             where i.indrelid = c.oid and i.indisvalid and i.indimmediate
             and case c.relreplident when 'd' then i.indisprimary when 'i' then i.indisreplident else false end
             order by array_position(i.indkey::int2[], a.attnum))
from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = to_regclass(%s)
"""
PUBLICATION = """
select p.oid::bigint, p.xmin::text, p.pubinsert and p.pubupdate and p.pubdelete, p.pubtruncate, p.pubviaroot,
       t.tablename is not null, {columns}, {row_filter},
       array(select r.oid::bigint from pg_publication_rel r where r.prpubid = p.oid and r.prrelid = any(c.family) order by 1),
       {schemas}
from pg_publication p
cross join (select n.nspname, c.relname, c.oid || array(select a::oid from pg_partition_ancestors(c.oid) a) as family
            from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = %s) c
left join pg_publication_tables t on t.pubname = p.pubname and t.schemaname = c.nspname and t.tablename = c.relname
where p.pubname = %s
"""
SCHEMAS = """
array(select s.oid::bigint from pg_publication_namespace s where s.pnpubid = p.oid
      and s.pnnspid in (select relnamespace from pg_class where oid = any(c.family)) order by 1)
"""


class Publication(msgspec.Struct, frozen=True):
    """A publication with the data that it sends of one table."""

    name: str
    sends_changes: bool
    """True if it publishes inserts, updates and deletes."""
    sends_truncates: bool
    is_via_root: bool
    has_table: bool
    columns: tuple[str, ...] | None
    """The columns that it sends; None for servers before PostgreSQL 15, which have no column lists."""
    row_filter: str | None
    entry: tuple[str, ...]
    """The identity of the table's entry. If two are equal, the entry was not changed in between."""


class Captured(msgspec.Struct, frozen=True):
    """A table with the columns that the log has, and its publication if there is one."""

    table: Table
    """Its key is that of the records: the columns of the replica identity, or with REPLICA IDENTITY FULL the primary
    key.
    """
    oid: int
    schema: str
    relation: str
    database: str
    is_partitioned: bool
    identity: str
    """`d`: the primary key, `f`: the whole row, `i`: an index, `n`: nothing."""
    identity_columns: tuple[str, ...]
    publication: Publication | None

    def mark(self) -> dict[str, Any]:
        """Return the part that a position keeps."""
        entry = [] if self.publication is None else list(self.publication.entry)
        return {"oid": self.oid, "key": list(self.table.key), "publication": entry}

    def source(self, database: Postgresql) -> str:
        """Return the FROM clause of the snapshot.

        Tables that inherit from this one have their own changes; partitions do not.
        """
        only = "" if self.is_partitioned else "only "
        return f"{only}{database.quote_table(self.table.name)}"

    def ensure_identity(self) -> None:
        """Raise ConfigError if PostgreSQL would reject every update and deletion of the table once a publication has it."""
        if self.identity != "f" and not self.identity_columns:
            raise ConfigError(
                f"table {self.table.name} has no replica identity, so PostgreSQL rejects its updates and deletions, also those of other programs, "
                "as soon as a publication has it; give it a primary key, or alter table "
                f"{self.table.name} replica identity full"
            )

    def ensure_published(self) -> None:
        """Raise ConfigError if the publication leaves out changes of the table."""
        publication, name = self.publication, self.table.name
        assert publication is not None
        if not publication.sends_changes or not publication.sends_truncates:
            what = "publish = 'insert, update, delete, truncate'"
        elif self.is_partitioned and not publication.is_via_root:
            what = "publish_via_partition_root = true"
        elif not publication.has_table:
            raise ConfigError(f"publication {publication.name} does not have table {name}; add it, or choose another")
        else:
            return
        raise ConfigError(
            f"publication {publication.name} leaves out changes of {name}; set {what} there, or choose another"
        )

    def loss_since(self, mark: Mapping[str, Any]) -> str | None:
        """Return the description of a change since a position that the log cannot repair, or None."""
        name, publication = self.table.name, self.publication
        if self.oid != mark["oid"]:
            return (
                f"table {name} is not the table that was read: that one was renamed, or dropped and created again, and changes of this one are "
                f"not in the slot; give the earlier table its name back, or {START_AGAIN}"
            )
        if list(self.table.key) != mark["key"]:
            return (
                f"table {name} has the key ({', '.join(self.table.key)}), and rows were read with ({', '.join(mark['key'])}); give it the "
                f"earlier primary key or replica identity back, or {START_AGAIN}"
            )
        if publication is None:
            return f"the publication of table {name} does not exist any more, and changes of the table are lost; {START_AGAIN}"
        if not mark["publication"] or list(publication.entry) == mark["publication"]:
            return None
        if not publication.has_table:
            return f"publication {publication.name} does not have table {name} any more, and its changes are not in the slot; {START_AGAIN}"
        return (
            f"publication {publication.name} was altered (columns, rows or operations of table {name}), so "
            f"changes may be missing; {START_AGAIN}"
        )


def find_captured(database: Postgresql, connection: Any, name: str, publication: str) -> Captured:
    """Return the table as captured now; ConfigError if it cannot be captured."""
    whole = database.describe_table(connection, name)
    found = connection.execute(RELATION, (database.quote_table(name),)).fetchone()
    if found is None:  # dropped meanwhile
        raise missing_table(name, [])
    oid, schema, relation, in_database, kind, persistence, identity, generated, identity_columns = found
    if kind not in ("r", "p") or persistence != "p":
        raise ConfigError(
            f"{name} has no changes in the server's log, because it is a view, or a foreign, temporary or unlogged table; "
            "choose a table, or read it with type: database"
        )
    published = find_publication(connection, oid, publication)
    sent = [one.name for one in whole.columns]
    if published is not None and published.has_table and published.columns is not None:
        sent = [one for one in sent if one in published.columns]
    if (
        published is None or connection.info.server_version < WITH_GENERATED
    ):  # the catalogue lists columns that are not sent
        sent = [one for one in sent if one not in generated]
    key = tuple(identity_columns) if identity in ("d", "i") and identity_columns else whole.key
    for one in key:
        if one not in sent:
            raise ConfigError(
                f"table {name}: column {one!r} of its key is not in the log, because it is generated or not in the publication's column "
                "list; publish it, or choose another replica identity"
            )
    return Captured(
        table=whole.select_columns(sent)._replace(key=key),
        oid=oid,
        schema=schema,
        relation=relation,
        database=in_database,
        is_partitioned=kind == "p",
        identity=identity,
        identity_columns=tuple(identity_columns),
        publication=published,
    )


def find_publication(connection: Any, oid: int, name: str) -> Publication | None:
    """Return the data that the publication sends of the table with this oid; None if there is no such publication."""
    is_new = connection.info.server_version >= WITH_COLUMN_LISTS
    query = PUBLICATION.format(
        columns="t.attnames::text[]" if is_new else "null::text[]",
        row_filter="t.rowfilter::text" if is_new else "null::text",
        schemas=SCHEMAS if is_new else "array[]::bigint[]",
    )
    found = connection.execute(query, (oid, name)).fetchone()
    if found is None:
        return None
    pub_oid, version, changes, truncates, via_root, has_table, columns, row_filter, entries, schemas = found
    return Publication(
        name=name,
        sends_changes=changes,
        sends_truncates=truncates,
        is_via_root=via_root,
        has_table=has_table,
        columns=None if columns is None else tuple(columns),
        row_filter=row_filter,
        # ALTER PUBLICATION … SET changes the xmin; ADD and DROP TABLE do not.
        entry=tuple(map(str, (pub_oid, version, *entries, "schemas", *schemas))),
    )
