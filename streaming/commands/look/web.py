"""What a process serves besides its metrics: `/status` as JSON, and the page at `/`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from threading import Lock
from typing import Generic, TypeVar

from checkpoints.clock import now_micros
from reconcilers.declared.families import FAMILIES
from reconcilers.words.errors import ReconcilerError
from reconcilers.words.iso import iso
from streaming.commands.look.nines import nines_in
from streaming.commands.look.page import OpenFindingView, PageContent, page, without_status
from streaming.commands.look.status import status
from streaming.commands.look.status_check import problems
from streaming.commands.look.status_shown import Status
from streaming.commands.look.status_shown import as_json as status_as_json
from streaming.monitoring.endpoint import UNAVAILABLE, HttpAnswer, Routes, as_json
from streaming.monitoring.health import Health
from streaming.monitoring.metrics import Metrics
from streaming.settings import Settings
from streaming.tables.own_keyspace import open_own

KEPT_FOR = 10.0
"""Seconds for which what was read is shown again: readers add no load to Cassandra."""
READ, SHOWN = 2_000, 50
"""Open findings of a family that are read, and of all that are shown."""
HTML = "text/html; charset=utf-8"
T = TypeVar("T")


@dataclass(slots=True)
class Kept(Generic[T]):
    """A value that is read at most every `KEPT_FOR`, by one thread at a time."""

    read: Callable[[], T]
    clock: Callable[[], float] = time.monotonic
    _lock: Lock = field(default_factory=Lock)
    _value: T | None = None
    _read_at: float = float("-inf")

    def get(self) -> T:
        """The value, read again if it is too old. Raises what reading it raises."""
        with self._lock:
            if self._value is None or self.clock() - self._read_at > KEPT_FOR:
                self._value = self.read()
                self._read_at = self.clock()
            return self._value


def pages(settings: Settings, health: Health, metrics: Metrics | None = None) -> Routes:
    """The routes of a process; the stream's own ``metrics`` have its nines."""

    def read_status() -> Status:
        found = status(settings)
        if metrics is None:
            return found
        return replace(found, nines=nines_in(metrics.registry.collect()))

    states = Kept(read_status)
    findings = Kept(lambda: newest(open_findings(settings)))
    title = f"reconciler of {settings.cassandra.keyspace}"

    def as_object() -> HttpAnswer:
        try:
            return as_json(status_as_json(states.get()))
        except ReconcilerError as failed:
            return as_json({"error": str(failed)}, UNAVAILABLE)

    def as_page() -> HttpAnswer:
        try:
            found, some = states.get(), findings.get()
        except ReconcilerError as failed:
            return HttpAnswer(without_status(title, str(failed)), UNAVAILABLE, HTML)
        wrong, now = list(problems(found)), iso(now_micros())
        return HttpAnswer(
            page(PageContent(title, found, health.unready(), wrong, some, now)), kind=HTML
        )

    return {"/status": as_object, "/": as_page}


def open_findings(settings: Settings) -> Iterator[OpenFindingView]:
    """The first open findings of each family. Raises `Retryable`."""
    journal = open_own(settings).journal
    for family in FAMILIES:
        for each in islice(journal.open_findings(family), READ):
            yield OpenFindingView(each, family)


def newest(found: Iterator[OpenFindingView]) -> list[OpenFindingView]:
    """The newest of these findings, at most `SHOWN`."""
    return sorted(found, key=lambda each: each.finding.found_at, reverse=True)[:SHOWN]
