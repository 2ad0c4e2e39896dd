"""The checks of ``reconcile doctor``, as tuples."""

from collections.abc import Callable, Iterator

from streaming.commands.doctor.checks import bookmarks as bookmarks
from streaming.commands.doctor.checks import broker as broker
from streaming.commands.doctor.checks import canary as canaries
from streaming.commands.doctor.checks import (
    capture,
    content,
    guardrails,
    lists,
    quotas,
    space,
    unheard,
    used_tables,
)
from streaming.commands.doctor.checks import permissions as rights
from streaming.commands.doctor.checks import schema as structure
from streaming.commands.doctor.checks.check import CassandraContext, Check, KafkaContext

ON_CASSANDRA: tuple[Callable[[CassandraContext], Iterator[Check]], ...] = (
    structure.james_tables,
    structure.optional_tables,
    structure.own_keyspace,
    canaries.canary_table,  # before rights are granted on its keyspace
    structure.copies_and_levels,
    structure.clocks,
    rights.truth_readable,
    rights.role,
    guardrails.guardrails,
    content.content_readable,
    used_tables.used_tables,
    lists.lists_of_rights,
    quotas.one_quota_table,
    quotas.quotas_readable,
    capture.cdc_on,
    capture.node_settings,
    capture.agents,
    canaries.canaries_heard,
    space.memory_space,
)
ON_KAFKA: tuple[Callable[[KafkaContext], Iterator[Check]], ...] = (
    broker.topics,
    bookmarks.bookmarks,
    unheard.unheard_tables,
)
