"""All tallies that are corrected. To add one, add its file and a line here.

If two tallies share a name, an installation keeps the one that James writes
(`reconcilers.counters.live_table`).
"""

from reconcilers.declared.tallies.current_quota import CURRENT_QUOTA, QUOTA_CURRENT_VALUE
from reconcilers.declared.tallies.mailbox_counters import MAILBOX_COUNTERS
from reconcilers.declared.tally import Tally

MAILBOX_TALLIES: tuple[Tally, ...] = (MAILBOX_COUNTERS,)
USER_TALLIES: tuple[Tally, ...] = (CURRENT_QUOTA, QUOTA_CURRENT_VALUE)
