"""The truths that families share."""

from reconcilers.declared.truth import TruthTable
from reconcilers.words.key import KeyColumn

IMAP_UIDS = TruthTable(
    table="imapuidtable",
    source=KeyColumn("messageid", "timeuuid", "message"),
    slot=("mailboxid", "uid"),
    required=("modseq", "internaldate", "bodystartoctet", "fullcontentoctets", "headercontent"),
    summed=("flagseen", "fullcontentoctets"),
    contents=("messagev2", "messagev3"),
)
"""A row for each UID of a message in a mailbox; the rows of a message are one partition."""
