"""Rows with a key into PostgreSQL by COPY: they wait in a temporary table, from which two statements take them at the end.

The rule: what is there afterwards is what one statement for each row, in their order, would have left. So a table on which
something else than the table itself looks at each row is none for this: rules, policies, triggers, domains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from ottla.pipelines.databases.copying import copy_in
from ottla.pipelines.sinks.database.statements import Statements
from ottla.pipelines.sinks.upserts import DELETED

STAGE = "ottla_rows"
TURN = "ottla turn"
"""The column that has the order of the rows."""
ALONE = """
select has_database_privilege(current_database(), 'TEMP') and not (relhasrules or relrowsecurity)
   and not exists (select from pg_trigger where tgrelid = c.oid and not tgisinternal)
   and not exists (select from pg_attribute a join pg_type t on t.oid = a.atttypid
                   where a.attrelid = c.oid and not a.attisdropped and t.typtype = 'd')
from pg_class c where oid = to_regclass(%s)
"""


def can_be_staged(connection: Any, quoted: str) -> bool:
    """Whether rows may be put together before the table sees them, and there may be a temporary table."""
    found = connection.execute(ALONE, (quoted,)).fetchone()
    return found is not None and bool(found[0])


@dataclass
class StagedRows:
    """The rows of one transaction; made with their temporary table, which is gone when the transaction ends."""

    connection: Any
    statements: Statements
    as_it_is: bool
    """Whether the bytes of the values are what the columns have."""
    count: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        for one in stage(self.statements):
            self.connection.execute(one)

    def add(self, rows: pa.RecordBatch) -> None:
        """Rows after those that are there; with the column `_deleted` or without."""
        names = list(self.statements.columns)
        turns = pa.array(range(self.count, self.count + rows.num_rows), pa.int64())
        columns = [*(rows.column(name) for name in names), turns]
        if DELETED in rows.schema.names:
            names, columns = [*names, TURN, DELETED], [*columns, rows.column(DELETED)]
        else:
            names = [*names, TURN]
        all_rows = pa.RecordBatch.from_arrays(columns, names=names)
        copy_in(self.connection, staged(self.statements, names), all_rows, self.as_it_is)
        self.count += rows.num_rows

    def finish(self) -> None:
        """Have the table take them."""
        if self.count:
            for one in (delete(self.statements), write(self.statements)):
                self.connection.execute(one)


def stage(statements: Statements) -> Sequence[str]:
    """The temporary table, whose columns are as the table's own."""
    quote = statements.database.identifier
    names = ", ".join(map(quote, statements.columns))
    table = statements.database.quoted(statements.table)
    return (
        f"create temporary table {STAGE} on commit drop as select {names} from {table} with no data",
        f"alter table pg_temp.{STAGE} add {quote(TURN)} bigint, add {quote(DELETED)} boolean",
    )


def staged(statements: Statements, names: Sequence[str]) -> str:
    """The temporary table with the columns that are copied into it."""
    return f"pg_temp.{STAGE} ({', '.join(map(statements.database.identifier, names))})"


def delete(statements: Statements) -> str:
    """Take away each row that was deleted at any time: one that comes again afterwards comes as a new one."""
    quote = statements.database.identifier
    same = " and ".join(f"t.{quote(name)} = s.{quote(name)}" for name in statements.key)
    table = statements.database.quoted(statements.table)
    return f"delete from {table} t using pg_temp.{STAGE} s where s.{quote(DELETED)} and {same}"


def write(statements: Statements) -> str:
    """The last row of each key, but where that is deleted."""
    quote = statements.database.identifier
    key, names = (", ".join(map(quote, some)) for some in (statements.key, statements.columns))
    last = f"select distinct on ({key}) * from pg_temp.{STAGE} order by {key}, {quote(TURN)} desc"
    rows = f"select {names} from ({last}) last where {quote(DELETED)} is not true"
    return f"insert into {statements.target()} {rows} {statements.conflict()}"
