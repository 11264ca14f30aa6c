"""Parses JSON texts that clients send inside fields or have stored, such as those of tags; checks
JSON values of any type."""

from __future__ import annotations

import gc
import json
import threading
from typing import Any, Final

MAX_DEPTH: Final = 200
"""Maximum depth of nested lists and objects. It keeps recursive functions far below Python's limit
of recursion."""


class NestedTooDeeply(ValueError):
    """Raised for a JSON value that is nested deeper than :data:`MAX_DEPTH`."""


class _CollectionPause:
    """Pauses Python's garbage collector of the process while any thread is in a ``with`` block."""

    def __init__(self) -> None:
        # Between any two steps below, a finalizer of the same thread may parse a text.
        self._lock = threading.RLock()
        self._blocks = 0
        self._was_enabled = False

    def __enter__(self) -> None:
        with self._lock:
            self._blocks += 1
            if self._blocks == 1:
                self._was_enabled = gc.isenabled()
                gc.disable()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            if self._blocks == 1 and self._was_enabled:
                gc.enable()
            self._blocks -= 1


_collection_paused: Final = _CollectionPause()


def load_json(text: str | bytes, **options: Any) -> Any:
    """Returns the value of a JSON text, as :func:`json.loads` does. Raises ValueError, also for a
    text that is nested too deeply for Python's parser.

    No garbage is collected meanwhile: in the innermost call of the parser Python has no recursion
    left for finalizers, which would fail.
    """
    with _collection_paused:
        try:
            return json.loads(text, **options)
        except RecursionError as error:
            raise NestedTooDeeply("nested too deeply") from error


def parse_json_text(text: str, *, lone_surrogates: bool = False) -> Any:
    """Returns the value of a JSON text. Raises ValueError for a text that is no JSON, and for a
    value that is nested too deeply or that :func:`check_storable` refuses.

    Args:
        lone_surrogates: whether strings may contain unpaired surrogates, because the value is
            stored and returned as JSON in ASCII.
    """
    value = load_json(text)
    check_depth(value, text)
    if "\\" in text and not lone_surrogates:  # only an escape can make an unpaired surrogate
        check_storable(value)
    return value


def parse_json_bytes(data: bytes, *, lone_surrogates: bool = False) -> Any:
    """Returns the value of a JSON text in UTF-8, UTF-16 or UTF-32, as :func:`parse_json_text`
    does."""
    text = data.decode(json.detect_encoding(data))
    return parse_json_text(text, lone_surrogates=lone_surrogates)


def check_storable(value: Any) -> None:
    """Raises ValueError for a JSON value that contains an unpaired surrogate, which no string
    attribute of an item can hold, or that is nested deeper than :data:`MAX_DEPTH`."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except RecursionError as error:
        raise NestedTooDeeply("nested too deeply") from error
    text.encode()  # raises UnicodeEncodeError, a ValueError
    check_depth(value, text)


def storable(text: str) -> str:
    """Returns a text with ``?`` for each unpaired surrogate, which JSON can express, but which no
    string attribute and no file can hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def check_depth(value: Any, text: str) -> None:
    """Raises NestedTooDeeply for the value of a JSON text that is nested deeper than
    :data:`MAX_DEPTH`."""
    if text.count("[") + text.count("{") > MAX_DEPTH and _depth(value) > MAX_DEPTH:
        raise NestedTooDeeply("nested too deeply")


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while level := [part for part in level if isinstance(part, list | dict)]:
        depth += 1
        level = [
            inner for part in level for inner in (part.values() if isinstance(part, dict) else part)
        ]
    return depth
