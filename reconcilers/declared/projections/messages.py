"""S1: `messageIdTable`, the listing of a mailbox, kept equal to `imapUidTable`.

The whole rule:

=====================================  ===========================================================
truth rows claiming (mailboxid, uid)   the projection row at (mailboxid, uid)
=====================================  ===========================================================
exactly one, complete                  exists, and every column that both tables have is equal:
                                       flags (set *and* cleared), user flags, modseq, dates, sizes,
                                       thread, header id, and the messageid itself
none                                   does not exist
one that is incomplete                 is left alone, reported: `incomplete_truth_row`
one incomplete that the row equals     is left alone, reported: `incomplete_in_both`
more than one                          is left alone, reported: `duplicate_uid`
=====================================  ===========================================================

James writes this table by UPDATE, in parts, so a row may be partial. It writes modseq with every
flag change, so an equal modseq proves nothing.
"""

from reconcilers.declared.family import Projection
from reconcilers.words.model import Row


def every_truth_row(_truth: Row) -> bool:
    """Return True: the listing has each message of a mailbox, whatever its flags."""
    return True


MESSAGES = Projection(
    name="messages",
    table="messageidtable",
    key=("mailboxid", "uid"),
    belongs=every_truth_row,
    identity="messageid",
    write_time_of_sets="modseq",
)
