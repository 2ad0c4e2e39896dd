"""The workers of the workload: each has a mail server and does one operation after the other."""

import logging
import random
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Concatenate, ParamSpec, TypeVar
from uuid import UUID

from cassandra.cluster import Session

from deploy.mailserver.directory import Directory
from deploy.mailserver.faults import Faults, ProcessDiedError, StatementTimeoutError
from deploy.mailserver.mail import Clock, Message, Numbers
from deploy.mailserver.mailbag import (
    labelled,
    random_change,
    random_content,
    random_flags,
    random_rights,
    with_attachments,
)
from deploy.mailserver.mailserver import MailServer, MessageGoneError, new_timeuuid
from deploy.mailserver.statements import SERVER_TROUBLE
from deploy.mailserver.variant import USUAL, Variant

log = logging.getLogger(__name__)

MIX = {"append": 30, "copy": 10, "copy_within": 5, "move": 10, "flags": 33, "expunge": 12}
"""Shares of each operation. Where there is no message to work on, one is appended."""
MAILBOX_EVERY = 5
"""After so many operations on messages comes one on a mailbox."""

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


@dataclass(frozen=True)
class ServerStarter:
    """Starts mail servers over one keyspace; each worker's clock is off by one of these."""

    session: Session
    keyspace: str
    faults: Faults
    clock_offsets_ms: tuple[int, ...]
    variant: Variant = USUAL
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
            variant=self.variant,
        )


class Office:
    """What the workers share: mailboxes and messages; and how servers start.

    Only in `untidy` mailboxes, those of one user, does a message get a second uid, or come back:
    when a delete of it is lost there, what its user meant can stay undecided, and the counters with
    it. `been` tells where each message has been, for the one worker who has it. `shared` are the
    mailboxes of mail, whose names and lists of rights change; `empty` are others.
    """

    def __init__(
        self,
        session: Session,
        keyspace: str,
        directory: Directory,
        faults: Faults,
        clock_offsets_ms: tuple[int, ...] = (0,),
        variant: Variant = USUAL,
    ) -> None:
        self.directory = directory
        self.mailboxes: list[UUID] = []
        self.untidy: list[UUID] = []
        self.been: defaultdict[UUID, set[UUID]] = defaultdict(set)
        self.shared = Directory(directory.rest_s)
        self.empty = Directory(directory.rest_s)
        self._servers = ServerStarter(session, keyspace, faults, clock_offsets_ms, variant)

    def start_server(self, worker: int) -> MailServer:
        """Start a mail server process for this worker."""
        return self._servers.start(worker)

    def create_mailboxes(self, users: int, mailboxes_per_user: int) -> None:
        """Create mailboxes for new users, who were in no earlier run; the last is untidy."""
        faults = Faults(ledger=self._servers.faults.ledger)
        server = replace(self._servers, faults=faults).start(0)
        run_name = new_timeuuid().hex[:8]
        for user in range(users):
            self.untidy = [
                server.create_mailbox(f"user{user}-{run_name}@example.org", f"folder{folder}")
                for folder in range(mailboxes_per_user)
            ]
            self.mailboxes += self.untidy
        for mailboxid in self.mailboxes:
            self.shared.check_in(mailboxid)


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
            if number % MAILBOX_EVERY == 0:
                self._change_mailbox(number // MAILBOX_EVERY)

    def _append(self, chance: random.Random) -> None:
        content = random_content(chance)
        mailboxid = chance.choice(self._office.mailboxes)
        self._office.been[content.messageid].add(mailboxid)
        flags = labelled(random_flags(chance), chance)
        content = with_attachments(content, chance)
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

    def _change_mailbox(self, number: int) -> None:
        """Three of four share one; of the others each does what the one before did not.

        Nobody else changes the same mailbox meanwhile, but for its messages.
        """
        chance = random.Random(f"{self._seed}:{number}:mailbox")
        if number % 4:
            self._with_mailbox(self._share, chance)
            return
        match number // 4 % 3:
            case 0:
                name = f"project-{number}"
                if mailboxid := self._attempt(MailServer.create_mailbox, "friends", name):
                    self._office.empty.check_in(mailboxid)
            case 1:
                self._with_mailbox(self._rename, chance)
            case 2:
                if mailboxid := self._office.empty.check_out(chance):
                    self._attempt(MailServer.delete_mailbox, mailboxid)

    def _with_mailbox(
        self, change: Callable[[UUID, random.Random], None], chance: random.Random
    ) -> None:
        """Change a mailbox, with mail or without."""
        for directory in chance.sample([self._office.shared, self._office.empty], 2):
            if mailboxid := directory.check_out(chance):
                change(mailboxid, chance)
                directory.check_in(mailboxid)
                return

    def _share(self, mailboxid: UUID, chance: random.Random) -> None:
        if chance.random() < 0.1:
            several = dict(random_rights(chance) for _ in range(3))
            granted = {name: letters for name, letters in several.items() if letters}
            self._attempt(MailServer.share_with, mailboxid, granted)
        else:
            self._attempt(MailServer.share, mailboxid, *random_rights(chance))

    def _rename(self, mailboxid: UUID, chance: random.Random) -> None:
        self._attempt(MailServer.rename_mailbox, mailboxid, f"renamed-{chance.getrandbits(48):x}")

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
