"""``reconcile bookmark``: names the offsets that the stream has settled, to replay from."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

from checkpoints.bookmarks import Bookmark, Bookmarks
from checkpoints.cassandra import CassandraBookmarks
from checkpoints.codec import Json
from reconcilers.words.errors import Misconfigured
from reconcilers.words.iso import iso
from reconcilers.words.names import did_you_mean
from streaming.commands.arguments.output import TABLE, add_format, formatted
from streaming.commands.wiring.stream_names import StreamNames
from streaming.settings import Mode, Settings
from streaming.tables.own_keyspace import open_own

COLUMNS = ("name", "settled", "offsets")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``reconcile bookmark NAME | --list | --delete NAME [--mode …]``."""
    does = parser.add_mutually_exclusive_group(required=True)
    does.add_argument("name", nargs="?", metavar="NAME", help="one of that name is replaced")
    does.add_argument("--list", action="store_true", help="all names, and what they stand for")
    does.add_argument("--delete", metavar="NAME", help="remove the name")
    parser.add_argument(
        "--mode",
        choices=[each.value for each in Mode],
        default=Mode.REPAIR.value,
        help="of the stream in this mode (repair)",
    )
    add_format(parser)
    parser.set_defaults(run=run)


def run(settings: Settings, arguments: argparse.Namespace) -> int:
    """Name, list or delete. Raises `Misconfigured`, `Unreachable`, `Refused`."""
    names = StreamNames.of(settings, Mode(arguments.mode))
    stream = names.bookmarks(settings.families()[0])
    desk = BookmarkDesk(CassandraBookmarks(open_own(settings).store), stream)
    if arguments.list and arguments.format != TABLE:
        for line in formatted(arguments.format, desk.rows(), COLUMNS):
            print(line)
    elif arguments.list:
        print("\n".join(desk.listed()) or "no bookmark has a name")
    elif arguments.delete is not None:
        desk.delete(arguments.delete)
        print(f"removed bookmark {arguments.delete}")
    else:
        print("\n".join(desk.name(arguments.name)))
    return 0


@dataclass(frozen=True, slots=True)
class BookmarkDesk:
    """The named bookmarks of one stream."""

    bookmarks: Bookmarks
    stream: str

    def name(self, name: str) -> Iterator[str]:
        """Name the offsets that are settled now. Raises `Misconfigured` if there are none."""
        newest = self.bookmarks.newest(self.stream)
        if newest is None:
            raise Misconfigured(
                f"stream {self.stream} has settled nothing yet: there is nothing to name"
            )
        before = self.bookmarks.named(self.stream, name)
        if before is not None:
            yield f"bookmark {name} of {iso(before.recorded_at)} is replaced"
        yield from _told(self.bookmarks.name(newest, name))

    def listed(self) -> Iterator[str]:
        """A line for each bookmark, with its offsets."""
        for each in self.bookmarks.all_named(self.stream):
            yield from _told(each)

    def rows(self) -> Iterator[Json]:
        """Each bookmark as an object, by `COLUMNS`."""
        for each in self.bookmarks.all_named(self.stream):
            offsets = {
                f"{topic}:{number}": at for (topic, number), at in sorted(each.settled.items())
            }
            yield {"name": each.name, "settled": iso(each.recorded_at), "offsets": offsets}

    def delete(self, name: str) -> None:
        """Delete a bookmark. Raises `Misconfigured` if there is none of this name."""
        self.named(name)
        self.bookmarks.forget(self.stream, name)

    def named(self, name: str) -> Bookmark:
        """The bookmark of this name. Raises `Misconfigured` if there is none."""
        found = self.bookmarks.named(self.stream, name)
        if found is None:
            others = [str(each.name) for each in self.bookmarks.all_named(self.stream)]
            raise Misconfigured(
                f"no bookmark is named {name}: there are {', '.join(others) or 'none'}"
                f" (`reconcile bookmark --list`){did_you_mean(name, others)}"
            )
        return found


def _told(bookmark: Bookmark) -> Iterator[str]:
    yield f"{bookmark.name}: settled at {iso(bookmark.recorded_at)}"
    for (topic, number), offset in sorted(bookmark.settled.items()):
        yield f"  {topic}:{number}:{offset}"
