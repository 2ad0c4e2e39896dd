"""Random mail: messages as they arrive, and what users do to their flags."""

import random
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from deploy.mailserver.mail import Attachment, Content, Flags
from deploy.mailserver.mailserver import new_timeuuid, now_ms

USER_FLAGS = ("$Forwarded", "$label1", "projects", "a faire")
CHANGEABLE_FLAGS = ("answered", "deleted", "draft", "flagged", "seen")


def random_content(chance: random.Random) -> Content:
    """A new message of some size, received within the last year."""
    received = now_ms() - timedelta(seconds=chance.randrange(365 * 86_400))
    messageid = new_timeuuid()
    headers = chance.randrange(300, 4_000)
    return Content(
        messageid=messageid,
        internaldate=received,
        bodystartoctet=headers,
        fullcontentoctets=headers + chance.randrange(1, 2_000_000),
        headercontent=f"header-{messageid}",
        threadid=chance.choice([messageid, None]),
    )


def random_flags(chance: random.Random) -> Flags:
    """The flags of a message as it arrives."""
    return Flags(
        system=frozenset(flag for flag in CHANGEABLE_FLAGS if chance.random() < 0.2),
        user=frozenset(flag for flag in USER_FLAGS if chance.random() < 0.2),
    )


def with_attachments(content: Content, chance: random.Random) -> Content:
    """The message, for some with one or two attachments, of random ids as James gives them."""
    if chance.random() >= 0.25:
        return content
    attachments = tuple(
        Attachment(
            id=str(UUID(int=chance.getrandbits(128), version=4)),
            type="application/pdf",
            size=chance.randrange(1, 1_000_000),
            name=chance.choice([None, f"page{number}.pdf"]),
            inline=chance.random() < 0.5,
        )
        for number in range(chance.choice((1, 2)))
    )
    return replace(content, attachments=attachments)


def random_rights(chance: random.Random) -> tuple[str, str]:
    """Whose rights are set, mostly those of a user, and to which letters; none take them away."""
    name = f"friend{chance.randrange(6)}@example.org"
    if chance.random() < 0.25:
        name = chance.choice(("$staff", "anyone", f"-{name}", "-$staff"))
    return name, chance.choice(("", "l", "lr", "lrs", "lrstw", "aeiklprstwx"))


def labelled(flags: Flags, chance: random.Random) -> Flags:
    """The flags, for some messages with a label that hardly any other has."""
    if chance.random() < 0.3:
        return Flags(flags.system, flags.user | {f"project-{chance.randrange(1_000)}"})
    return flags


def random_change(flags: Flags, chance: random.Random) -> Flags:
    """The flags with one system flag turned over, and sometimes a user flag too.

    Whoever changes flags has opened the mailbox: what was recent is recent no more.
    """
    user = flags.user
    if chance.random() < 0.4:
        user = user ^ {chance.choice(USER_FLAGS)}
    turned = flags.system ^ {chance.choice(CHANGEABLE_FLAGS)}
    return Flags(system=turned - {"recent"}, user=user)
