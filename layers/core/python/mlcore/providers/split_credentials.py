"""Finds the credentials of a model that a stream says in several parts: a model says a key token by
token.

The end of a text that may be the beginning of a credential is held back, and comes with the next
part of the same text, or before what ends the text. No event is held back, and no other text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from mlcore.providers import stream_texts
from mlcore.providers.credential_redactor import CredentialRedactor
from mlcore.providers.stream_texts import Part, Text
from mlcore.wire.json_text import parse_json_bytes

MAX_HELD: Final = 256
"""Texts whose ends are held back at the same time: more than any answer has."""

_DONE: Final = b"[DONE]"

Json = dict[str, Any]


class _Held:
    """The end of a text that is held back."""

    def __init__(self, part: Part, end: str, name: bytes) -> None:
        self.part = part
        self.end = end
        self.name = name
        """The line with the name of the part's event; empty without one."""


class SplitCredentials:
    """Replaces the credentials that the events of one stream spell together."""

    def __init__(self, redactor: CredentialRedactor) -> None:
        self._redactor = redactor
        self._held: dict[Text, _Held] = {}
        self._name = b""
        """A line with the name of an event whose data has not come yet."""
        self._framing = b"", b"\n"
        """What stands before and after the data of an event."""

    def events(self, event: Json) -> list[Json]:
        """Returns an event without credentials that began in earlier ones, and before it the ends
        of the texts that it ends."""
        released, _ = self._pass_on(event)
        return [*(held.part.alone(held.end) for held in released), event]

    def rest(self) -> list[Json]:
        """Returns the events with what is held back at the end of the stream."""
        return [held.part.alone(held.end) for held in self._release(self._held)]

    def lines(self, line: bytes) -> Iterator[bytes]:
        """Yields a line of a stream of events or of JSON objects, and before it the lines of
        further events; unchanged unless a credential began in an earlier event."""
        if not self._redactor.has_credentials:
            yield line
            return
        content = line.rstrip(b"\r\n")
        if content.startswith(b"event:"):
            yield from self._named()
            self._name = line
            return
        is_event = content.startswith(b"data:")
        data = content[5:] if is_event else content
        value = self._parsed(data) if is_event or data.startswith(b"{") else None
        if isinstance(value, dict):
            self._framing = (b"data: " if is_event else b"", line[len(content) :] or b"\n")
            yield from self._event_lines(line, value)
            return
        if data.strip() == _DONE:
            yield from self.last_lines()
        yield from self._named()
        yield line

    def last_lines(self) -> Iterator[bytes]:
        """Yields the lines that are held back at the end of the stream."""
        name, self._name = self._name, b""
        for held in self._release(self._held):
            yield from self._lines_of(held)
        self._name = name
        yield from self._named()

    def _event_lines(self, line: bytes, event: Json) -> Iterator[bytes]:
        released, is_changed = self._pass_on(event)
        for held in released:
            yield from self._lines_of(held)
        yield from self._named()
        before, after = self._framing
        yield before + json.dumps(event).encode() + after if is_changed else line

    def _pass_on(self, event: Json) -> tuple[list[_Held], bool]:
        """Takes from the event what is held back of its texts, and adds to it what was. Returns the
        ends of other texts, which the event ends, and whether the event was changed."""
        ended = stream_texts.ended(event)
        parts = stream_texts.parts(event)
        continued = {part.text for part in parts}
        released = self._release(
            text for text in self._held if text.is_in(ended) and text not in continued
        )
        is_changed = False
        for part in parts:
            is_last = part.text.is_in(ended) or len(self._held) >= MAX_HELD
            is_changed |= self._replace(part, is_last=is_last)
        return released, is_changed

    def _replace(self, part: Part, *, is_last: bool) -> bool:
        """Sets what is told of a part now. Returns whether that is not the part itself."""
        held = self._held.pop(part.text, None)
        text = part.value if held is None else held.end + part.value
        text = self._redactor.spelled_text(text)
        kept = 0 if is_last else self._redactor.beginning_at_end(text)
        if kept:
            self._held[part.text] = _Held(part, text[-kept:], self._name)
            text = text[:-kept]
        if text == part.value:
            return False
        part.set(text)
        return True

    def _release(self, texts: Iterable[Text]) -> list[_Held]:
        return [self._held.pop(text) for text in list(texts)]

    def _lines_of(self, held: _Held) -> Iterator[bytes]:
        before, after = self._framing
        if held.name:
            yield held.name
        yield before + json.dumps(held.part.alone(held.end)).encode() + after
        if before:
            yield after

    def _named(self) -> Iterator[bytes]:
        if self._name:
            yield self._name
        self._name = b""

    @staticmethod
    def _parsed(data: bytes) -> Any:
        try:
            return parse_json_bytes(data, lone_surrogates=True)
        except ValueError:
            return None
