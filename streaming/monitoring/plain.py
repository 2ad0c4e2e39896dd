"""Text for a terminal without what could steer it: users choose names and reasons that we print."""

from __future__ import annotations

from typing import Any, TextIO

CONTROLS = {
    code: f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
    for code in (
        *range(0x20),
        *range(0x7F, 0xA0),
        *range(0x202A, 0x202F),  # these two change the direction of what follows
        *range(0x2066, 0x206A),
    )
    if chr(code) not in "\n\t"
}


def plain(text: str) -> str:
    """The text with each control character as an escape, but for ends of lines and tabs."""
    return text.translate(CONTROLS)


class PlainText:
    """A stream that writes `plain` text to another one."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the text; returns its length."""
        self._stream.write(plain(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
