"""Runs the schema steps that a keyspace has not finished; refuses a keyspace with unknown steps.

It may be killed and repeated. Nothing that exists is created again. A step is recorded after all of
it is done, and until then it is repeated. Two processes may run it at once for the same reason.
Their statements go to one node (`SchemaStore.change`), because two nodes that create one table
concurrently would create two.

Rows are copied only while no live stream holds the lease. A stream of an older version would
continue with the old tables, and what it found after the copy would be lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from itertools import takewhile
from typing import Protocol

from checkpoints.schema import STEPS
from checkpoints.schema.step import RowStore, SchemaStep, key_of, made_by, statements
from reconcilers.declared.family import Schema
from reconcilers.words.errors import AlreadyRunning, OtherSchema

SEQUENCE = "own"
"""The partition of `schema_steps` with the steps of this keyspace."""
RECORDS_TABLE = "schema_steps"
RECORDS = """
CREATE TABLE IF NOT EXISTS $ks.schema_steps (
    sequence text,
    number int,
    name text,
    finished_at timestamp,
    product text,
    PRIMARY KEY (sequence, number)
);
"""
"""A row for each finished step: when it was finished, and by which version of the product."""
ONE_COPY: Mapping[str, str] = {"class": "SimpleStrategy", "replication_factor": "1"}

UpgradeStep = str | SchemaStep
"""A statement to run, or a step whose rows are to be copied."""


class SchemaStore(RowStore, Protocol):
    """The keyspace as the upgrade needs it. Implementation: `checkpoints.cassandra.Store`."""

    @property
    def keyspace(self) -> str:
        """Its name, which may be inserted into a statement."""

    def tables(self) -> Schema:
        """The cluster's current column types by table; empty without the keyspace."""

    def nodes(self, data_centre: str | None) -> int:
        """The number of nodes of the cluster, or of one data centre (by name)."""

    def change(self, statement: str) -> None:
        """Run a statement, always on the same node; wait until all live nodes agree."""


@dataclass(frozen=True, slots=True)
class SchemaGap:
    """What a keyspace lacks: ``what`` in words, ``todo`` as steps; empty if nothing is."""

    what: tuple[str, ...] = ()
    todo: tuple[UpgradeStep, ...] = ()

    @property
    def cql(self) -> tuple[str, ...]:
        """The statements that an admin can run by hand: all before the first copy of rows."""
        before = takewhile(lambda each: isinstance(each, str), self.todo)
        return tuple(str(each) for each in before)

    @property
    def copies(self) -> tuple[SchemaStep, ...]:
        """The steps whose rows have to be copied."""
        return tuple(each for each in self.todo if isinstance(each, SchemaStep))


def gap_of(
    keyspace: str,
    replication: Mapping[str, str],
    schema: Schema,
    finished: Mapping[int, str],
    steps: tuple[SchemaStep, ...] = STEPS,
) -> SchemaGap:
    """What is to be done, in order. ``finished`` has the names of the finished steps by number.

    Raises `OtherSchema` for a step that this product does not have, and for existing tables that
    its steps cannot extend.
    """
    _refuse_older(keyspace, schema, finished, steps)
    _refuse_newer(keyspace, finished, steps)
    have: Schema = {table: dict(columns) for table, columns in schema.items()}
    what: list[str] = []
    todo: list[UpgradeStep] = [] if schema else [_create_keyspace(keyspace, replication)]
    for thing, cql in _missing(RECORDS, keyspace, have):
        todo.append(cql)
        if RECORDS_TABLE in schema:
            what.append(thing)
    for step in steps:
        for thing, cql in _missing(step.cql, keyspace, have):
            todo.append(cql)
            if step.number in finished:
                what.append(thing)
        if step.number not in finished:
            what.append(str(step))
            todo += [step] if step.copy else []
            todo.append(_record(keyspace, step))
    return SchemaGap(tuple(what), tuple(todo))


def read_gap(
    store: SchemaStore,
    replication: Mapping[str, str] = ONE_COPY,
    steps: tuple[SchemaStep, ...] = STEPS,
) -> SchemaGap:
    """What this keyspace lacks. Raises `OtherSchema`, `Unreachable`, `Refused`."""
    schema = store.tables()
    finished: dict[int, str] = {}
    if RECORDS_TABLE in schema:
        read = store.prepare("SELECT number, name FROM $ks.schema_steps WHERE sequence = ?")
        finished = dict(store.rows("reading the finished steps", read, SEQUENCE))
    return gap_of(store.keyspace, replication, schema, finished, steps)


def upgrade(
    store: SchemaStore,
    replication: Mapping[str, str] = ONE_COPY,
    told: Callable[[str], None] = lambda _: None,
    steps: tuple[SchemaStep, ...] = STEPS,
) -> None:
    """Finish every step; ``told`` gets one line about each step. Returns at once if none is left.

    Raises `OtherSchema`, `Unreachable`, and `Refused` without the rights. Raises `AlreadyRunning`
    if rows must be copied beside a live stream.
    """
    for step in read_gap(store, replication, steps).todo:
        if isinstance(step, str):
            store.change(step)
            told(" ".join(step.split()))
        elif step.copy is not None:
            _refuse_beside_a_stream(store, step)
            step.copy(store)
            told(f"{step}: rows copied")


def product_version() -> str:
    """The version of the installed product."""
    try:
        return metadata.version("james-reconciler")
    except metadata.PackageNotFoundError:
        return "not installed"


def _refuse_older(
    keyspace: str, schema: Schema, finished: Mapping[int, str], steps: tuple[SchemaStep, ...]
) -> None:
    """Refuse a keyspace from before the first release: its tables have other keys than ours."""
    ours = {step.number: step.name for step in steps}
    other = [number for number, name in finished.items() if ours.get(number, name) != name]
    created = [each for step in steps for each in statements(step.cql, keyspace)]
    keys = [(made_by(each)[0], key_of(each)) for each in created]
    lacking = [table for table, key in keys if table in schema and key - schema[table].keys()]
    if other or lacking:
        named = f"step {min(other)} ({finished[min(other)]})" if other else f"table {min(lacking)}"
        raise OtherSchema(
            f"keyspace {keyspace} was made by a version before the first release, as its {named}"
            f" shows: back up what you need of it, run DROP KEYSPACE {keyspace}, then start"
            " `reconcile stream` (deploy/runbook.md, *Restore our keyspace*)"
        )


def _refuse_newer(
    keyspace: str, finished: Mapping[int, str], steps: tuple[SchemaStep, ...]
) -> None:
    known = {step.number for step in steps}
    if not known.issuperset(finished):
        raise OtherSchema(
            f"keyspace {keyspace} is at version {max(finished)}, this product"
            f" ({product_version()}) knows versions up to {max(known)}: use the product that"
            " upgraded it, or a newer one; there is no way back"
        )


def _refuse_beside_a_stream(store: SchemaStore, step: SchemaStep) -> None:
    read = store.prepare("SELECT name, host, holder FROM $ks.lease")
    for name, host, holder in store.rows("reading the leases", read):
        if holder is not None:
            raise AlreadyRunning(
                f"{step} copies rows, and a live stream on host {host} holds the lease {name}: stop"
                " it first (the lease of a killed process expires)"
            )


def _missing(cql: str, keyspace: str, have: Schema) -> Iterator[tuple[str, str]]:
    """What a text creates and ``have`` lacks, each with its statement; adds it to ``have``."""
    for statement in statements(cql, keyspace):
        table, columns = made_by(statement)
        if table not in have:
            have[table] = dict(columns)
            yield f"table {table}", statement
        else:
            for column, kind in columns.items():
                if column not in have[table]:
                    have[table][column] = kind
                    added = f"ALTER TABLE {keyspace}.{table} ADD IF NOT EXISTS {column} {kind}"
                    yield f"column {table}.{column}", added


def _create_keyspace(keyspace: str, replication: Mapping[str, str]) -> str:
    options = ", ".join(f"{_quoted(name)}: {_quoted(value)}" for name, value in replication.items())
    return f"CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = {{{options}}}"


def _record(keyspace: str, step: SchemaStep) -> str:
    columns = "sequence, number, name, finished_at, product"
    values = f"{_quoted(SEQUENCE)}, {step.number}, {_quoted(step.name)}, toTimestamp(now()),"
    values += f" {_quoted(product_version())}"
    return f"INSERT INTO {keyspace}.schema_steps ({columns}) VALUES ({values})"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
