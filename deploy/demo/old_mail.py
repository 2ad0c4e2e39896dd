"""Mail that is older than the stream, and damaged: only a sweep sees what nobody touches."""

from cassandra.cluster import Session

from deploy.demo.other_oddities import plant_rights
from deploy.demo.planter import Planter
from deploy.mailserver.ledger import AMBIGUOUS_RANGE_DELETE, VERIFIED
from deploy.mailserver.mail import Flags, Message

PIECES, PIECE = 20, 2**19
"""10 MiB: more than two segments of the embedded Cassandra's commit log."""


class OldMail:
    """A mailbox of which rows were lost or left long ago, those of shared rights, too.

    Its owner opens some of the messages.
    """

    def __init__(self, planter: Planter) -> None:
        self._planter = planter
        self._opened = [self._lost(), self._stale()]
        self._lost()
        self._stale()
        self._orphan()
        plant_rights(planter)

    def open(self) -> None:
        """Its owner flags two of them: now there are events of these."""
        for message in self._opened:
            flags = Flags(message.flags.system | {"flagged"}, message.flags.user)
            self._planter.server.set_flags(message, flags)

    def _lost(self) -> Message:
        message = self._planter.message()
        self._planter.unproject(message)
        self._planter.note("old_missing_row", message, VERIFIED)
        return message

    def _stale(self) -> Message:
        message = self._planter.message()
        self._planter.set_cells(message, flagseen=True)
        self._planter.note("old_stale_flag", message, VERIFIED)
        return message

    def _orphan(self) -> None:
        message = self._planter.message()
        self._planter.server.expunge(message)
        self._planter.project(message)
        self._planter.note("old_orphan", message, AMBIGUOUS_RANGE_DELETE)


def end_segment(session: Session) -> None:
    """Fill the commit log's open segment.

    The agent sends whatever stands in a segment that also has a captured change, older writes too.
    """
    session.execute(
        "CREATE KEYSPACE IF NOT EXISTS demo_scratch WITH replication ="
        " {'class': 'SimpleStrategy', 'replication_factor': 1}"
    )
    session.execute("CREATE TABLE IF NOT EXISTS demo_scratch.junk (id int PRIMARY KEY, junk blob)")
    for number in range(PIECES):
        session.execute(
            "INSERT INTO demo_scratch.junk (id, junk) VALUES (%s, %s)", (number, bytes(PIECE))
        )
    session.execute("DROP KEYSPACE demo_scratch")
