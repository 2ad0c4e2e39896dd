"""S5: what a user's mailboxes hold together: messages, and their octets.

Older James keeps both in one row of `currentQuota`; newer has a row for each in
`quotaCurrentValue`. A row that does not exist is not made: James makes it with the first message.
"""

from reconcilers.tally import Cell, Sum, Tally

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
        Sum.COUNT: Cell("currentvalue", {"quotacomponent": "MAILBOX", "quotatype": "COUNT"}),
        Sum.SIZE: Cell("currentvalue", {"quotacomponent": "MAILBOX", "quotatype": "SIZE"}),
    },
    per_quota_root=True,
)
