"""A real store whose process dies in the middle of an upgrade."""

from collections.abc import Iterable

from cassandra.cluster import Session

from checkpoints.cassandra import Store
from checkpoints.cassandra.store import Request
from tests.fakes.schema_store import Killed


class DyingStore(Store):
    """Lives to see so many changes: statements of the schema, and rows that are copied."""

    def __init__(self, session: Session, keyspace: str, changes_left: int) -> None:
        super().__init__(session, keyspace)
        self._changes_left = changes_left

    def change(self, statement: str) -> None:
        self._one_more(statement)
        super().change(statement)

    def run(self, doing: str, requests: Iterable[Request]) -> None:
        for request in requests:
            self._one_more(doing)
            super().run(doing, [request])

    def _one_more(self, what: str) -> None:
        if self._changes_left == 0:
            raise Killed(what)
        self._changes_left -= 1
