"""The table that is captured, as the catalogue and the publication describe it, and how that changed since the snapshot.

The log carries less than the table has: no generated columns, no columns outside the publication's column list, no rows outside its
row filter, and of a deleted row only the columns of the replica identity. The snapshot therefore reads exactly what the publication
sends, and the parts that a later change could not repair are kept in the position: the table's oid, its key, and the identity of its
entry in the publication. PostgreSQL makes a new entry whenever a table is removed and added again, or gets another row filter or
column list, so that a change that was undone before the next look is detected too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ottla.errors import ConfigError
from ottla.pipelines.databases.postgresql import Postgresql
from ottla.pipelines.databases.table import Table, missing_table

WITH_COLUMN_LISTS = 150000
"""The version of the server from which publications have column lists, row filters and schemas."""
WITH_GENERATED = 180000
"""The version from which a publication may have generated columns, if it is asked to."""
ANEW = "begin anew under another name, with a new snapshot"

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
    """A publication, and what it sends of one table."""

    name: str
    sends_changes: bool
    """True if it publishes inserts, updates and deletes."""
    sends_truncates: bool
    is_via_root: bool
    has_table: bool
    columns: tuple[str, ...] | None
    """The columns that it sends; None from a server before PostgreSQL 15, which has no column lists."""
    row_filter: str | None
    entry: tuple[str, ...]
    """What identifies the table's place in it. Two equal ones mean that nothing was changed in between."""


class Captured(msgspec.Struct, frozen=True):
    """A table with the columns that the log carries, and its publication if there is one."""

    table: Table
    """Its key is the one that records have: the columns of the replica identity, or with REPLICA IDENTITY FULL the primary key."""
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
        """Return the FROM clause of the snapshot: tables that inherit from this one have changes of their own, partitions do not."""
        only = "" if self.is_partitioned else "only "
        return f"{only}{database.quoted(self.table.name)}"

    def ensure_identity(self) -> None:
        """ConfigError if PostgreSQL would refuse every update and deletion of the table once a publication has it."""
        if self.identity != "f" and not self.identity_columns:
            raise ConfigError(
                f"table {self.table.name} has no replica identity, so PostgreSQL refuses its updates and deletions, those of other programs "
                "too, as soon as a publication has it; give it a primary key, or alter table "
                f"{self.table.name} replica identity full"
            )

    def ensure_published(self) -> None:
        """ConfigError if the publication leaves out changes of the table."""
        publication, name = self.publication, self.table.name
        assert publication is not None
        if not publication.sends_changes or not publication.sends_truncates:
            what = "publish = 'insert, update, delete, truncate'"
        elif self.is_partitioned and not publication.is_via_root:
            what = "publish_via_partition_root = true"
        elif not publication.has_table:
            raise ConfigError(f"publication {publication.name} does not have table {name}; add it, or name another")
        else:
            return
        raise ConfigError(
            f"publication {publication.name} leaves changes of {name} out; set {what} there, or name another"
        )

    def loss_since(self, mark: Mapping[str, Any]) -> str | None:
        """Return what happened since a position was written that the log cannot make good, or None."""
        name, publication = self.table.name, self.publication
        if self.oid != mark["oid"]:
            return (
                f"table {name} is not the table that was read: that one was renamed, or dropped and made anew, and changes of this one are "
                f"not in the slot; give the earlier table its name back, or {ANEW}"
            )
        if list(self.table.key) != mark["key"]:
            return (
                f"table {name} has the key ({', '.join(self.table.key)}), and rows were read with ({', '.join(mark['key'])}); give it the "
                f"earlier primary key or replica identity back, or {ANEW}"
            )
        if publication is None:
            return f"the publication of table {name} is gone, and with it changes of the table; {ANEW}"
        if not mark["publication"] or list(publication.entry) == mark["publication"]:
            return None
        if not publication.has_table:
            return f"publication {publication.name} does not have table {name} any more, and its changes are not in the slot; {ANEW}"
        return (
            f"publication {publication.name} was altered in what it sends of table {name}, such as its columns, rows or operations, so that "
            f"changes may be missing; {ANEW}"
        )


def find_captured(database: Postgresql, connection: Any, name: str, publication: str) -> Captured:
    """Return the table as it is captured now; ConfigError where it cannot be."""
    whole = database.table(connection, name)
    found = connection.execute(RELATION, (database.quoted(name),)).fetchone()
    if found is None:  # dropped since
        raise missing_table(name, [])
    oid, schema, relation, in_database, kind, persistence, identity, generated, identity_columns = found
    if kind not in ("r", "p") or persistence != "p":
        raise ConfigError(
            f"{name} is no table whose changes are in the server's log, which views, foreign, temporary and unlogged tables are not; "
            "name a table, or read it with type: database"
        )
    published = find_publication(connection, oid, publication)
    sent = [one.name for one in whole.columns]
    if published is not None and published.has_table and published.columns is not None:
        sent = [one for one in sent if one in published.columns]
    if published is None or connection.info.server_version < WITH_GENERATED:  # whose catalogue lists what is not sent
        sent = [one for one in sent if one not in generated]
    key = tuple(identity_columns) if identity in ("d", "i") and identity_columns else whole.key
    for one in key:
        if one not in sent:
            raise ConfigError(
                f"table {name}: column {one!r} of its key is not in the log, because it is generated or not in the publication's column "
                "list; publish it, or choose another replica identity"
            )
    return Captured(
        table=whole.of(sent)._replace(key=key),
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
    """Return what the publication sends of the table with this oid; None if there is no such publication."""
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
        # The xmin is another one after each ALTER PUBLICATION … SET, and the same after ADD and DROP TABLE.
        entry=tuple(map(str, (pub_oid, version, *entries, "schemas", *schemas))),
    )
