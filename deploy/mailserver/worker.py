"""The workers of the workload: each has a mail server and does one operation after the other."""

import logging
import random
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Concatenate, ParamSpec, TypeVar
from uuid import UUID

from cassandra.cluster import Session

from deploy.mailserver.directory import Directory
from deploy.mailserver.faults import Faults, ProcessDiedError, StatementTimeoutError
from deploy.mailserver.mail import Clock, Message, Numbers
from deploy.mailserver.mailbag import labelled, random_change, random_content, random_flags
from deploy.mailserver.mailserver import MailServer, MessageGoneError, new_timeuuid
from deploy.mailserver.statements import SERVER_TROUBLE
from deploy.mailserver.truth import STRONG, Strength

log = logging.getLogger(__name__)

MIX = {"append": 30, "copy": 10, "copy_within": 5, "move": 10, "flags": 33, "expunge": 12}
"""Shares of each operation. Where there is no message to work on, one is appended."""

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


@dataclass(frozen=True)
class ServerStarter:
    """Starts mail servers over one keyspace; each worker's clock is off by one of these."""

    session: Session
    keyspace: str
    faults: Faults
    clock_offsets_ms: tuple[int, ...]
    strength: Strength = STRONG
    numbers: Numbers = field(default_factory=Numbers)

    def start(self, worker: int) -> MailServer:
        """A mail server process for this worker."""
        offset_ms = self.clock_offsets_ms[worker % len(self.clock_offsets_ms)]
        return MailServer(
            self.session,
            self.keyspace,
            numbers=self.numbers,
            clock=Clock(offset_ms),
            faults=self.faults,
            strength=self.strength,
        )


class Office:
    """What the workers share: mailboxes and messages; and how servers start.

    Only in `untidy` mailboxes, those of one user, does a message get a second uid, or come back:
    when a delete of it is lost there, what its user meant can stay undecided, and the counters with
    it. `been` tells where each message has been, for the one worker who has it.
    """

    def __init__(
        self,
        session: Session,
        keyspace: str,
        directory: Directory,
        faults: Faults,
        clock_offsets_ms: tuple[int, ...] = (0,),
        strength: Strength = STRONG,
    ) -> None:
        self.directory = directory
        self.mailboxes: list[UUID] = []
        self.untidy: list[UUID] = []
        self.been: defaultdict[UUID, set[UUID]] = defaultdict(set)
        self._servers = ServerStarter(session, keyspace, faults, clock_offsets_ms, strength)

    def start_server(self, worker: int) -> MailServer:
        """Start a mail server process for this worker."""
        return self._servers.start(worker)

    def create_mailboxes(self, users: int, mailboxes_per_user: int) -> None:
        """Create mailboxes for new users, who were in no earlier run; the last is untidy."""
        server = self.start_server(0)
        run_name = new_timeuuid().hex[:8]
        for user in range(users):
            self.untidy = [
                server.create_mailbox(f"user{user}-{run_name}@example.org", f"folder{folder}")
                for folder in range(mailboxes_per_user)
            ]
            self.mailboxes += self.untidy


class Worker:
    """One worker and its mail server; starts another server when that one dies."""

    def __init__(self, office: Office, number: int, seed: int) -> None:
        self._office = office
        self._number = number
        self._seed = seed
        self._server = office.start_server(number)
        self._changes = {
            "copy": self._copy,
            "copy_within": self._copy_within,
            "move": self._move,
            "flags": self._change_flags,
            "expunge": self._expunge,
        }

    def work(self, turns: Iterable[int]) -> None:
        """Do the operation of each turn; its random numbers are the same in every run."""
        for number in turns:
            chance = random.Random(f"{self._seed}:{number}")
            [operation] = chance.choices(list(MIX), weights=list(MIX.values()))
            if operation == "append":
                self._append(chance)
            else:
                self._change_one(operation, chance)

    def _append(self, chance: random.Random) -> None:
        content = random_content(chance)
        mailboxid = chance.choice(self._office.mailboxes)
        self._office.been[content.messageid].add(mailboxid)
        flags = labelled(random_flags(chance), chance)
        self._attempt(MailServer.append, mailboxid, content, flags)
        self._office.directory.check_in(content.messageid)

    def _change_one(self, operation: str, chance: random.Random) -> None:
        """Change a message that nobody else works on; one that is gone is forgotten."""
        messageid = self._office.directory.check_out(chance)
        places = self._attempt(MailServer.places, messageid) if messageid else None
        if messageid is None or not places:
            self._append(chance)
            return
        self._changes[operation](chance.choice(places), places, chance)
        self._office.directory.check_in(messageid)

    def _copy(self, message: Message, _: list[Message], chance: random.Random) -> None:
        self._attempt(MailServer.copy, message, self._another_mailbox(message, chance))

    def _copy_within(self, message: Message, places: list[Message], chance: random.Random) -> None:
        """Give it a second uid in an untidy mailbox; if it is in none, copy it to one first."""
        untidy = [place for place in places if place.mailboxid in self._office.untidy]
        if untidy:
            message = chance.choice(untidy)
            self._attempt(MailServer.copy, message, message.mailboxid)
        else:
            self._attempt(MailServer.copy, message, chance.choice(self._office.untidy))

    def _move(self, message: Message, places: list[Message], chance: random.Random) -> None:
        """Move it, or copy it where two uids are or would be here: James's move would lose both."""
        target = self._another_mailbox(message, chance)
        alone = len(siblings(message, places)) == 1 and target != message.mailboxid
        self._attempt(MailServer.move if alone else MailServer.copy, message, target)

    def _change_flags(self, message: Message, _: list[Message], chance: random.Random) -> None:
        self._attempt(MailServer.set_flags, message, random_change(message.flags, chance))

    def _expunge(self, message: Message, places: list[Message], _: random.Random) -> None:
        """Expunge every uid that the message has in this mailbox, one after the other."""
        for place in siblings(message, places):
            self._attempt(MailServer.expunge, place)

    def _another_mailbox(self, message: Message, chance: random.Random) -> UUID:
        """One where the message has never been, or an untidy one."""
        been = self._office.been[message.messageid]
        new = [mailboxid for mailboxid in self._office.mailboxes if mailboxid not in been]
        chosen = chance.choice(new or self._office.untidy)
        been.add(chosen)
        return chosen

    def _attempt(
        self,
        operation: Callable[Concatenate[MailServer, Arguments], Result],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Result | None:
        """Do it. The user shrugs at an error; a server that died is started again."""
        try:
            return operation(self._server, *arguments, **named)
        except ProcessDiedError:
            self._server = self._office.start_server(self._number)
        except (StatementTimeoutError, MessageGoneError, *SERVER_TROUBLE) as error:
            log.debug("an operation failed for its user: %r", error)
        return None


def siblings(message: Message, places: list[Message]) -> list[Message]:
    """All places of the message in this one's mailbox, this one included."""
    return [place for place in places if place.mailboxid == message.mailboxid]
