"""S5: the messages and octets that a user's mailboxes hold together.

James up to 3.8 has one row in `currentQuota` with both. `CassandraCurrentQuotaManagerV1` names the
row by `QuotaRoot.getValue()`. James 3.9 and later have a row for each in `quotaCurrentValue`.
`CassandraCurrentQuotaManagerV2` names those rows, through `CassandraQuotaCurrentValueDao`, by
`QuotaRoot.asString()`, which has the domain twice, by `QuotaComponent.MAILBOX` ("MAILBOX") and by
`QuotaType.COUNT` or `SIZE` ("count", "size"). Case matters. Rows of other components (SIEVE,
JMAP_UPLOADS) are not mail quotas.

A missing row is not created: James creates it with the first message.
"""

from uuid import UUID

from reconcilers.declared.tally import Cell, QuotaRoot, Sum, Tally


def identifier_of(key: UUID | str) -> str:
    """The `identifier` of a quota root of ours."""
    return QuotaRoot.of(str(key)).with_domain_again


CURRENT_QUOTA = Tally(
    name="current_quota",
    table="currentquota",
    key="quotaroot",
    cells={Sum.COUNT: Cell("messagecount"), Sum.SIZE: Cell("storage")},
    per_quota_root=True,
)

QUOTA_CURRENT_VALUE = Tally(
    name="current_quota",
    table="quotacurrentvalue",
    key="identifier",
    cells={
        Sum.COUNT: Cell("currentvalue", {"quotacomponent": "MAILBOX", "quotatype": "count"}),
        Sum.SIZE: Cell("currentvalue", {"quotacomponent": "MAILBOX", "quotatype": "size"}),
    },
    per_quota_root=True,
    row_key=identifier_of,
)
