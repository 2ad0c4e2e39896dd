"""Messages with attachments as James writes them, one table at a time, and what became of them."""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from reconcilers.declared.attachments import id_as_uuid
from tests.stack.scenes import Place, Scene, cells
from tests.stack.streams import until

TABLES = ["attachmentv2", "attachmentmessageid"]


def a_name() -> str:
    """The text id of another attachment."""
    return uuid.uuid4().hex


@dataclass
class Attached:
    """A message with attachments, by their text ids."""

    scene: Scene
    id: UUID = field(default_factory=uuid.uuid1)
    place: Place = field(init=False)

    def __post_init__(self) -> None:
        self.place = Place(messageid=self.id)

    # --- what James writes

    def append(self, *names: str) -> None:
        """All of it, in James's order: rows, references, content with its list, the place."""
        for each in names:
            self.write_row(each)
            self.refer(each)
        self.write_content(*names)
        self.exist()

    def write_row(self, name: str, *, blob: str | None = "blob", **changes: UUID | None) -> None:
        """The row of an attachment, of this message if no other ``message_id`` is given."""
        message = changes.get("message_id", self.id)
        given = {"id": name, "blobid": blob, "message_id": message, "size": 7}
        named = {column: value for column, value in given.items() if value is not None}
        self.scene.execute(
            f"INSERT INTO $mail.attachmentv2 (idasuuid, {', '.join(named)})"
            f" VALUES (%s{', %s' * len(named)})",
            id_as_uuid(name),
            *named.values(),
        )

    def refer(self, name: str) -> None:
        """The reference of an attachment to this message."""
        self.scene.execute(
            "INSERT INTO $mail.attachmentmessageid (attachmentidasuuid, messageid, attachmentid)"
            " VALUES (%s, %s, %s)",
            *(id_as_uuid(name), str(self.id), name),
        )

    def forget(self, name: str) -> None:
        """Delete that reference."""
        self.scene.execute(
            "DELETE FROM $mail.attachmentmessageid"
            " WHERE attachmentidasuuid = %s AND messageid = %s",
            *(id_as_uuid(name), str(self.id)),
        )

    def write_content(self, *names: str) -> None:
        """Content and list, in one statement."""
        self._write_list(f"{{id: '{each}', name: 'a.pdf', isinline: false}}" for each in names)

    def break_list(self) -> None:
        """A list that James cannot load."""
        self._write_list(["{name: 'a.pdf', isinline: false}"])

    def _write_list(self, elements: Iterable[str]) -> None:
        listed = ", ".join(elements)
        prepended = f", attachments = [{listed}] + attachments" if listed else ""
        self.scene.execute(
            "UPDATE $content SET fullcontentoctets = 100, headercontent = 'h'"
            f"{prepended} WHERE messageid = %s",
            self.id,
        )

    def exist(self) -> None:
        """Its place in a mailbox, in the truth and in the listing."""
        self.scene.write_both(self.place, cells())

    def expunge(self) -> None:
        """Its place and its content are deleted; the deletes of its references are lost."""
        self.scene.delete_truth(self.place)
        self.scene.delete_projection(self.place)
        self.scene.delete_content(self.place)

    # --- what the tables hold, and what was logged

    def key(self, name: str) -> str:
        """A reference as operators type it."""
        return f"{id_as_uuid(name)}/{self.id}"

    def is_referred(self, name: str) -> bool:
        """Whether the attachment has a reference to this message, with its text id."""
        row = self.scene.execute(
            "SELECT attachmentid FROM $mail.attachmentmessageid"
            " WHERE attachmentidasuuid = %s AND messageid = %s",
            *(id_as_uuid(name), str(self.id)),
        ).one()
        return row is not None and row.attachmentid == name

    def await_referred(self, name: str) -> None:
        until(f"{name} refers to {self.id}", lambda: self.is_referred(name))

    def await_unreferred(self, name: str) -> None:
        until(f"{name} does not refer to {self.id}", lambda: not self.is_referred(name))

    def row(self, name: str) -> Any:
        """The row of an attachment, None without one."""
        return self.scene.execute(
            "SELECT * FROM $mail.attachmentv2 WHERE idasuuid = %s", id_as_uuid(name)
        ).one()

    def told(self, name: str, **facts: Any) -> list[dict[str, Any]]:
        """All that was logged of the reference of an attachment to this message."""
        return self.scene.stream.findings(
            attachmentidasuuid=id_as_uuid(name), message=self.id, **facts
        )

    def await_told(self, name: str, begins: str) -> None:
        """Until the finding of its reference has a line that begins so."""

        def told() -> bool:
            return any(str(each["message"]).startswith(f"{begins}: ") for each in self.told(name))

        until(f"{begins} {name}", told)


def told_of_row(scene: Scene, name: str, **facts: Any) -> list[dict[str, Any]]:
    """All that was logged of the row of an attachment."""
    return scene.stream.findings(idasuuid=id_as_uuid(name), **facts)


def await_reported(scene: Scene, name: str, kind: str) -> None:
    """Until the row of an attachment is reported as of this kind."""
    until(
        f"{kind} of {name} is reported",
        lambda: told_of_row(scene, name, kind=kind, state="reported"),
    )
