"""Oddities planted by hand: one example each of what must be reported, or repaired."""

from dataclasses import replace
from datetime import UTC, datetime

from deploy.demo.planter import Planter, now_us
from deploy.mailserver.history import ProjectionWrite, Statement
from deploy.mailserver.ledger import AMBIGUOUS_RANGE_DELETE, CONTENT_LOST, VERIFIED
from deploy.mailserver.mailserver import insert_write, new_timeuuid

SECOND_US = 1_000_000
HOUR_US = 3600 * SECOND_US


def plant_reported(planter: Planter) -> None:
    """One of each class that the reconciler reports and leaves as it is."""
    incomplete_truth_row(planter)
    duplicate_uid(planter)
    shadowed_delete(planter)
    ambiguous_range_delete(planter)
    content_lost(planter)
    future_write_time(planter)


def plant_repaired(planter: Planter) -> None:
    """One of each difference that the reconciler must repair."""
    missing_row(planter)
    stale_flag(planter)
    missing_flag(planter)
    stale_user_flag(planter)
    missing_user_flag(planter)
    wrong_uid(planter)
    wrong_messageid(planter)
    partial_row_of_deleted(planter)
    partial_row_of_living(planter)
    differing_columns(planter)
    missing_columns(planter)


# Reported ---------------------------------------------------------------------------------


def incomplete_truth_row(planter: Planter) -> None:
    """A truth row lacks cells that every message has."""
    message = planter.message()
    planter.execute(
        f"DELETE modseq, internaldate FROM {planter.truth_table} USING TIMESTAMP ? "
        "WHERE messageid = ? AND mailboxid = ? AND uid = ?",
        now_us(),
        message.messageid,
        message.mailboxid,
        message.uid,
    )
    planter.note("incomplete_truth_row", message, "incomplete_truth_row")


def duplicate_uid(planter: Planter) -> None:
    """Two messages claim the same uid of the same mailbox in the truth."""
    first = planter.message()
    second = replace(first, content=replace(first.content, messageid=new_timeuuid()))
    planter.write_truth(second, now_us())
    planter.note("duplicate_uid", first, "duplicate_uid")


def shadowed_delete(planter: Planter) -> None:
    """A truth row written by a client a second fast outlives its own delete.

    Its write time is later than the delete's on a machine of any speed; and it arrives when that
    has been heard, however slow capture is: what was not heard yet keeps no row from being added.
    """
    message = planter.message()
    planter.server.expunge(message)
    outlives = now_us() + SECOND_US
    planter.pause()
    planter.write_truth(message, outlives)
    planter.note("shadowed_delete", message, "shadowed_delete")


def ambiguous_range_delete(planter: Planter) -> None:
    """Of two uids of one message one is expunged: the truth loses both, the projection one.

    The message lives on in another mailbox, so James keeps its content.
    """
    first = planter.message()
    planter.copy_elsewhere(first)
    second = planter.server.copy(first, planter.mailboxid)
    planter.pause()
    planter.server.expunge(first)
    planter.note("ambiguous_range_delete", second, AMBIGUOUS_RANGE_DELETE)


def content_lost(planter: Planter) -> None:
    """The same, and the message is nowhere else: James deletes what its user kept."""
    first = planter.message()
    second = planter.server.copy(first, planter.mailboxid)
    planter.pause()
    planter.server.expunge(first)
    planter.note("content_lost", second, CONTENT_LOST)


def future_write_time(planter: Planter) -> None:
    """The projection holds a wrong flag that was written an hour in the future."""
    message = planter.message()
    write = ProjectionWrite(
        statement=Statement.FLAGS,
        operation="planted",
        messageid=message.messageid,
        mailboxid=message.mailboxid,
        uid=message.uid,
        cells={"flagflagged": True, "modseq": message.modseq},
    )
    planter.write_projection(write, now_us() + HOUR_US)
    planter.note("future_write_time", message, "future_write_time")


# Repaired ---------------------------------------------------------------------------------


def missing_row(planter: Planter) -> None:
    """The projection lost a row."""
    message = planter.message()
    planter.unproject(message)
    planter.note("missing_row", message, VERIFIED)


def stale_flag(planter: Planter) -> None:
    """A flag is set in the projection and not in the truth, and the modseqs are equal."""
    message = planter.message()
    planter.set_cells(message, flagseen=True)
    planter.note("stale_flag", message, VERIFIED)


def missing_flag(planter: Planter) -> None:
    """A flag is set in the truth and not in the projection, and the modseqs are equal."""
    message = planter.message()
    planter.set_cells(message, flaganswered=False)
    planter.note("missing_flag", message, VERIFIED)


def stale_user_flag(planter: Planter) -> None:
    """A user flag is set in the projection and not in the truth."""
    message = planter.message()
    flags = insert_write("planted", message)
    planter.write_projection(replace(flags, cells={}, added=frozenset({"stale"})), now_us())
    planter.note("stale_user_flag", message, VERIFIED)


def missing_user_flag(planter: Planter) -> None:
    """A user flag of the truth is missing in the projection."""
    message = planter.message()
    flags = insert_write("planted", message)
    lost = replace(flags, cells={}, added=frozenset(), removed=message.flags.user)
    planter.write_projection(lost, now_us())
    planter.note("missing_user_flag", message, VERIFIED)


def wrong_uid(planter: Planter) -> None:
    """The projection has the row under another uid."""
    message = planter.message()
    elsewhere = replace(message, uid=message.uid + 1_000_000)
    planter.unproject(message)
    planter.project(elsewhere)
    planter.note("wrong_uid", message, VERIFIED, (elsewhere.mailboxid, elsewhere.uid))


def wrong_messageid(planter: Planter) -> None:
    """The projection names another message at this uid."""
    message = planter.message()
    planter.set_cells(message, messageid=new_timeuuid())
    planter.note("wrong_messageid", message, VERIFIED)


def partial_row_of_deleted(planter: Planter) -> None:
    """A flag change reaches the projection after the delete: a row without messageid."""
    message = planter.message()
    planter.server.expunge(message)
    planter.set_cells(message, flagseen=True, modseq=message.modseq + 1)
    planter.note("partial_row_of_deleted", message, VERIFIED)


def partial_row_of_living(planter: Planter) -> None:
    """The projection has only the cells of one flag change of a message that exists."""
    message = planter.message()
    planter.unproject(message)
    planter.set_cells(message, flagseen=False, modseq=message.modseq)
    planter.note("partial_row_of_living", message, VERIFIED)


def differing_columns(planter: Planter) -> None:
    """Each column that is no flag is wrong in the projection, one message for each."""
    wrong: dict[str, object] = {
        "modseq": 999_999,
        "threadid": new_timeuuid(),
        "internaldate": datetime(2001, 1, 1, tzinfo=UTC),
        "save_date": datetime(2001, 1, 1, tzinfo=UTC),
        "bodystartoctet": 1,
        "fullcontentoctets": 1,
        "headercontent": "wrong",
    }
    for column, value in wrong.items():
        message = planter.message()
        planter.set_cells(message, **{column: value})
        planter.note(f"differing_{column}", message, VERIFIED)


def missing_columns(planter: Planter) -> None:
    """Each column that is no flag is null in the projection only, one message for each."""
    for column in ("modseq", "threadid", "internaldate", "save_date", "headercontent"):
        message = planter.message()
        planter.set_cells(message, **{column: None})
        planter.note(f"missing_{column}", message, VERIFIED)
