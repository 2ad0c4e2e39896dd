"""S6: `mailboxCounters`, how many messages a mailbox has and how many of them are unseen.

The rule: ``count`` is the number of complete truth rows of the mailbox, ``unseen`` of those that
are not seen. A copy within the mailbox counts twice, as it is shown twice.
"""

from reconcilers.declared.tally import Cell, Sum, Tally

MAILBOX_COUNTERS = Tally(
    name="mailbox_counters",
    table="mailboxcounters",
    key="mailboxid",
    cells={Sum.COUNT: Cell("count"), Sum.UNSEEN: Cell("unseen")},
    may_create_row=True,
)
