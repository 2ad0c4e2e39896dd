r"""S6: `mailboxCounters`, the number of messages of a mailbox and of the unseen among them.

``count`` is the number of complete truth rows of the mailbox, ``unseen`` of those without \Seen. A
message that is copied within its mailbox counts twice, because readers see it twice.
"""

from reconcilers.declared.tally import Cell, Sum, Tally

MAILBOX_COUNTERS = Tally(
    name="mailbox_counters",
    table="mailboxcounters",
    key="mailboxid",
    cells={Sum.COUNT: Cell("count"), Sum.UNSEEN: Cell("unseen")},
    may_create_row=True,
)
