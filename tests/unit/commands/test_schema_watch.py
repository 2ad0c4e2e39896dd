"""A stream whose tables were altered ends itself: a new process binds the columns anew."""

from collections.abc import Callable

import pytest

from reconcilers.declared.family import Schema
from reconcilers.words.errors import EndedItself, Refused, Unreachable
from streaming.commands.wiring.schema_watch import SchemaWatch, bound
from streaming.settings import Settings
from tests.fakes.checked_cluster import JAMES

SETTINGS = Settings()
TRUTH, LISTING, INDEX = "imapuidtable", "messageidtable", "firstunseen"
Alter = Callable[[Schema], object]


@pytest.fixture
def schema() -> Schema:
    """As the cluster has it at the start."""
    return {table: dict(columns) for table, columns in JAMES.items()}


@pytest.fixture
def watch(schema: Schema) -> SchemaWatch:
    return SchemaWatch(SETTINGS, bound(SETTINGS, schema), lambda: schema)


def test_as_long_as_nobody_alters_anything_it_goes_on(watch: SchemaWatch) -> None:
    watch.check()
    watch.check()


def added(*tables: str) -> Alter:
    return lambda schema: [schema[each].update(extra="text") for each in tables]


def dropped(*tables: str) -> Alter:
    return lambda schema: [schema[each].pop("modseq") for each in tables]


@pytest.mark.parametrize(
    ("alter", "said"),
    [
        (added(TRUTH, LISTING), "messageidtable has extra"),
        (dropped(TRUTH, LISTING), "messageidtable lacks modseq"),
        (dropped(TRUTH), "messageidtable lacks modseq"),
        (dropped(LISTING), "messageidtable lacks modseq"),
        (lambda schema: schema.pop("mailboxcounters"), "other tables are there"),
    ],
)
def test_what_a_new_start_would_bind_otherwise_ends_it(
    schema: Schema, watch: SchemaWatch, alter: Alter, said: str
) -> None:
    alter(schema)
    with pytest.raises(EndedItself, match=said):
        watch.check()


@pytest.mark.parametrize(
    "alter",
    [
        added(TRUTH),
        added(INDEX),
        lambda schema: schema.update(another={"id": "uuid"}),
        lambda schema: schema[LISTING].pop("no such column", None),
    ],
)
def test_what_it_would_bind_alike_does_not(
    schema: Schema, watch: SchemaWatch, alter: Alter
) -> None:
    alter(schema)
    watch.check()


@pytest.mark.parametrize(
    ("alter", "said"),
    [
        (lambda schema: schema.pop(INDEX), f"table {INDEX} does not exist"),
        (lambda schema: schema[LISTING].pop("messageid"), "has no column messageid"),
        (
            lambda schema: [schema[each].update(extra="map<a, b>") for each in (TRUTH, LISTING)],
            "extra is of type map",
        ),
    ],
)
def test_where_a_new_start_would_be_refused_it_goes_on_and_says_so_once(
    schema: Schema, watch: SchemaWatch, alter: Alter, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    """An index that was dropped holds up no other; a new process would not even start."""
    alter(schema)
    watch.check()
    watch.check()
    (line,) = caplog.messages
    assert line.startswith("the next start will be refused: ")
    assert said in line


def test_where_the_schema_cannot_be_read_nothing_is_known(schema: Schema) -> None:
    def away() -> Schema:
        raise Unreachable("no host")

    def refuses() -> Schema:
        raise Refused("not now")

    with pytest.raises(Unreachable):
        SchemaWatch(SETTINGS, bound(SETTINGS, schema), away).check()
    SchemaWatch(SETTINGS, bound(SETTINGS, schema), refuses).check()
