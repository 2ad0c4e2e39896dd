"""Family *mailbox*: the paths of mailboxes, compared with their registrations and only reported."""

from reconcilers.declared.family import Family
from reconcilers.declared.mailbox_names import MAILBOX_NAMES
from reconcilers.declared.projections.mailbox_paths import MAILBOX_PATHS
from reconcilers.words.key import KeyColumn

MAILBOX = Family(
    name="mailbox",
    truth=MAILBOX_NAMES,
    key=(
        KeyColumn("username", "text", "user"),
        KeyColumn("namespace", "text", "namespace", mark="#"),
        KeyColumn("mailboxname", "text", "path"),
    ),
    wakes_on=(MAILBOX_NAMES.table, MAILBOX_PATHS.table),
    projections=(MAILBOX_PATHS,),
    suffix="_mailboxes",
    remembered=False,
)
