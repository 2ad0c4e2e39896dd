"""The index tables by hand: a row of one that knows UIDs alone, and the flags in use."""

from dataclasses import dataclass

from tests.stack.pasts import QUIET
from tests.stack.scenes import Cells, Place, Scene, cells

KEY_ONLY = {
    "deleted_uids": ("messagedeleted", "uid", {"flagdeleted": True}, {"flagdeleted": False}),
    "unseen_uids": ("firstunseen", "uid", {"flagseen": False}, {"flagseen": True}),
    "recent_uids": (
        "mailboxrecents",
        "recent_mesage_uid",
        {"flagrecent": True},
        {"flagrecent": False},
    ),
}
"""Table, its column of UIDs, flags of a message that belongs there, flags of one that does not."""


@dataclass(frozen=True)
class Index:
    """One key-only table, by hand."""

    scene: Scene
    name: str

    @property
    def belonging(self) -> Cells:
        return KEY_ONLY[self.name][2]

    @property
    def strange(self) -> Cells:
        return KEY_ONLY[self.name][3]

    def add(self, place: Place, at: int | None = None) -> None:
        table, column, _, _ = KEY_ONLY[self.name]
        using = f"USING TIMESTAMP {at}" if at is not None else ""
        self.scene.execute(
            f"INSERT INTO $mail.{table} (mailboxid, {column}) VALUES (%s, %s) {using}", *place.row
        )

    def has(self, place: Place) -> bool:
        table, column, _, _ = KEY_ONLY[self.name]
        query = f"SELECT * FROM $mail.{table} WHERE mailboxid = %s AND {column} = %s"
        return self.scene.execute(query, *place.row).one() is not None

    def says(self, place: Place, belongs: object) -> bool:
        return self.has(place) is belongs

    def clear(self, place: Place) -> None:
        """A user takes the flag away, on both sides."""
        self.scene.write_both(place, cells(**{**QUIET, **self.strange}))


class Applicable(Index):
    """The flags in use: one row for the whole mailbox, of which a flag is looked for."""

    @property
    def belonging(self) -> Cells:
        return {"userflags": {"work"}}

    @property
    def strange(self) -> Cells:
        return {"userflags": set()}

    def add(self, place: Place, at: int | None = None) -> None:
        assert at is None
        add_flag(self.scene, place, "work")

    def has(self, place: Place) -> bool:
        return "work" in flags_in_use(self.scene, place)

    def clear(self, place: Place) -> None:
        less = "SET userflags = userflags - {'work'}, modseq = 8"
        self.scene.execute(
            f"UPDATE $truth {less} WHERE messageid = %s AND mailboxid = %s AND uid = %s",
            place.messageid,
            *place.row,
        )
        self.scene.execute(
            f"UPDATE $projection {less} WHERE mailboxid = %s AND uid = %s", *place.row
        )


def add_flag(scene: Scene, place: Place, flag: str) -> None:
    """To those in use in the mailbox."""
    add = "UPDATE $mail.applicableflag SET userflags = userflags + %s WHERE mailboxid = %s"
    scene.execute(add, {flag}, place.mailboxid)


def flags_in_use(scene: Scene, place: Place) -> set[str]:
    """As the index has them for the mailbox."""
    query = "SELECT userflags FROM $mail.applicableflag WHERE mailboxid = %s"
    row = scene.execute(query, place.mailboxid).one()
    return set(row.userflags or ()) if row else set()
