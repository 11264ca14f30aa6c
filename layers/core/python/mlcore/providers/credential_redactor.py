"""Replaces the credentials of a model where a provider's answer repeats them.

A caller may use an endpoint whose key it may not read. Debug pages, proxies and test servers repeat
the headers of a request, so every answer passes through here before anything else reads it.

Answers are searched in complete units: a whole body, a line of a stream, or a message of a binary
stream. So a credential is found wherever the network splits an answer, and a unit is passed on as
soon as it is complete. JSON that may spell a credential with escapes is parsed and searched again.

A credential that a model spells over several events of a stream is not replaced; the caller may
have told the model its letters. Text that begins like a credential must not be held back: a caller
would see how far a guess is right, and find the credential letter by letter.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from mlcore.wire.json_text import load_json, parse_json_bytes

REDACTED: Final = "[REDACTED]"

_MIN_LENGTH: Final = 8
"""Shorter credentials are not replaced: they may occur in any sentence."""

_ESCAPES: Final = (b"\\u00", b"\\/", b"\0")
"""Byte sequences of a JSON text that spells ASCII characters in another way than UTF-8: with
escapes, or in UTF-16 or UTF-32."""


class CredentialRedactor:
    """Replaces the given credentials in the answers of model providers by :data:`REDACTED`, unless
    they are shorter than :data:`_MIN_LENGTH`."""

    def __init__(self, credentials: Iterable[str]) -> None:
        values = {text for value in credentials for text in (value, value.strip())}
        # The longest come first, because a credential may be a part of another one.
        self._values = sorted(filter(_is_long_enough, values), key=len, reverse=True)
        json_values = _unique(
            json.dumps(value, ensure_ascii=is_ascii)[1:-1]
            for value in self._values
            for is_ascii in (False, True)
        )
        self._spelled = sorted(_unique((*self._values, *json_values)), key=len, reverse=True)
        in_json = (json.dumps(value, ensure_ascii=False)[1:-1] for value in self._spelled)
        self._in_json = _unique((*json_values, *in_json))
        """The credentials as JSON strings spell them, also as strings inside a JSON text that is
        itself a JSON string."""
        self._encoded = [value.encode("utf-8", "surrogatepass") for value in self._spelled]
        is_latin = all(letter < "\u0100" for value in self._values for letter in value)
        escapes = _ESCAPES if is_latin else (*_ESCAPES, b"\\u")
        self._signs = (*self._encoded, *escapes) if self._values else ()

    def may_occur_in(self, data: bytes) -> bool:
        """Whether bytes of a model provider's answer contain one of the model's credentials, or may
        contain it with escapes."""
        return any(sign in data for sign in self._signs)

    def text(self, text: str) -> str:
        """Returns ``text`` with the model's credentials replaced."""
        return _replaced(text, self._values)

    def json_text(self, text: str) -> str:
        """Redacts a JSON text that this server has written: returns it without credentials in its
        strings, names and numbers. A text without credentials is returned unchanged."""
        if not any(value in text for value in self._in_json):
            return text
        try:
            redacted = _redacted(load_json(text), self._spelled)
            return json.dumps(redacted, ensure_ascii=False)
        except (ValueError, RecursionError):
            return _replaced(text, self._spelled)

    def value(self, value: Any) -> Any:
        """Returns a JSON value with the credentials in its strings, names and numbers replaced."""
        return _redacted(value, self._values)

    def line(self, line: bytes) -> bytes:
        """Returns a line of a stream of events or of JSON objects without credentials. A line that
        has none is returned unchanged."""
        if not self.may_occur_in(line):
            return line
        content = line.rstrip(b"\r\n")
        field, data = (b"data:", content[5:]) if content.startswith(b"data:") else (b"", content)
        try:
            value = parse_json_bytes(data, lone_surrogates=True)
        except ValueError:
            return self._bytes(line)
        redacted = self.value(value)
        if redacted == value:
            return line
        space = b" " if field else b""
        return field + space + json.dumps(redacted).encode() + line[len(content) :]

    def content(self, data: bytes) -> bytes:
        """Returns content of any type with the model's credentials replaced. Finds them unescaped
        anywhere, even if they contain line breaks, and escaped in lines of JSON."""
        if not self.may_occur_in(data):
            return data
        return b"".join(map(self.line, self._bytes(data).splitlines(keepends=True)))

    def _bytes(self, data: bytes) -> bytes:
        for value in self._encoded:
            data = data.replace(value, REDACTED.encode())
        return data


def _redacted(value: Any, credentials: Sequence[str]) -> Any:
    if not credentials:
        return value
    if isinstance(value, str):
        return _replaced(value, credentials)
    if isinstance(value, dict):
        return {
            _replaced(name, credentials): _redacted(item, credentials)
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [_redacted(item, credentials) for item in value]
    if type(value) in (int, float):
        number = repr(value)
        return value if _replaced(number, credentials) == number else REDACTED
    return value


def _replaced(text: str, credentials: Sequence[str]) -> str:
    for credential in credentials:
        text = text.replace(credential, REDACTED)
    return text


def _is_long_enough(value: str) -> bool:
    return len(value) >= _MIN_LENGTH


def _unique(values: Iterable[str]) -> list[str]:
    """Returns the values without repetitions, in their order."""
    return list(dict.fromkeys(values))
