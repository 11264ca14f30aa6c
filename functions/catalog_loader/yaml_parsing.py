"""Parses untrusted YAML into dicts, lists, texts, numbers, booleans and None, with limits on bytes,
depth and number of values.

The parser consumes libyaml's events: it holds no tree of nodes and does not recurse, and each alias
counts as many values as it stands for, so that nine lines that expand to a billion values are
refused.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

import yaml

MAX_BYTES: Final = 64_000_000
MAX_VALUES: Final = 6_000_000
"""Values in a file; those behind an alias count once per use."""
MAX_DEPTH: Final = 64

_INT: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_FLOAT: Final = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?")
_PLAIN: Final = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_TAGS: Final = "tag:yaml.org,2002:"
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class NotYaml(ValueError):
    """Raised if a file of the model catalog is not YAML, uses an unsupported feature or exceeds a
    limit; the message names the reason and, if one value is at fault, its place."""


class _OpenCollection:
    """A list or mapping whose end has not been read yet."""

    __slots__ = ("anchor", "key", "merged", "size", "value", "waiting")

    def __init__(self, value: Any, anchor: str | None) -> None:
        self.value = value
        self.anchor = anchor
        self.size = 1
        self.key: Any = None
        self.waiting = False
        """A key has been read, its value has not."""
        self.merged: list[Any] = []


def parse(data: bytes) -> Any:
    """Returns the value of the file's only document; None for an empty file. Raises NotYaml."""
    if len(data) > MAX_BYTES:
        raise NotYaml(f"the file has {len(data)} bytes, more than {MAX_BYTES}")
    if b"\0" in data:
        raise NotYaml("the file holds a NUL byte")
    try:
        text = data.decode("utf-8-sig")
        return _Reader(text).document()
    except UnicodeDecodeError:
        raise NotYaml("the file is not UTF-8") from None
    except yaml.YAMLError as error:
        raise NotYaml(" ".join(str(error).split())) from None


class _Reader:
    def __init__(self, text: str) -> None:
        self._events = _LOADER(text)
        self._open: list[_OpenCollection] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._size = 0
        self._documents: list[Any] = []

    def document(self) -> Any:
        try:
            documents = 0
            while True:
                event = self._events.get_event()
                if isinstance(event, yaml.StreamEndEvent):
                    break
                if isinstance(event, yaml.DocumentStartEvent):
                    documents += 1
                    if documents > 1:
                        raise NotYaml("the file holds more than one document")
                self._take(event)
        finally:
            self._events.dispose()
        return self._documents[0] if self._documents else None

    def _take(self, event: Any) -> None:
        if isinstance(event, yaml.ScalarEvent):
            value = _scalar(event)
            self._keep(event.anchor, value, 1)
            self._add(value, 1, event)
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                raise NotYaml(f"the alias {event.anchor!r} is not defined{_at(event)}")
            self._add(*self._anchors[event.anchor], event)
        elif isinstance(event, yaml.SequenceStartEvent | yaml.MappingStartEvent):
            if len(self._open) == MAX_DEPTH:
                raise NotYaml(f"it is nested more than {MAX_DEPTH} deep{_at(event)}")
            is_list = isinstance(event, yaml.SequenceStartEvent)
            self._open.append(_OpenCollection([] if is_list else {}, event.anchor))
        elif isinstance(event, yaml.SequenceEndEvent | yaml.MappingEndEvent):
            ended = self._open.pop()
            for merged in ended.merged:
                for key, value in merged.items():
                    ended.value.setdefault(key, value)
            self._keep(ended.anchor, ended.value, ended.size)
            self._add(ended.value, ended.size, event)

    def _keep(self, anchor: str | None, value: Any, size: int) -> None:
        if anchor is not None:
            self._anchors[anchor] = (value, size)

    def _add(self, value: Any, size: int, event: Any) -> None:
        if not self._open:
            self._documents.append(value)
            return
        owner = self._open[-1]
        owner.size += size
        self._size += size if isinstance(event, yaml.AliasEvent) else 1
        if owner.size > MAX_VALUES or self._size > MAX_VALUES:
            raise NotYaml(f"it holds more than {MAX_VALUES} values{_at(event)}")
        if isinstance(owner.value, list):
            owner.value.append(value)
        elif not owner.waiting:
            if isinstance(value, dict | list):
                raise NotYaml(f"a key is not a string{_at(event)}")
            owner.key, owner.waiting = _key(value), True
        else:
            owner.waiting = False
            if owner.key == "<<":
                self._merge(owner, value, event)
            else:
                owner.value[owner.key] = value

    @staticmethod
    def _merge(owner: _OpenCollection, value: Any, event: Any) -> None:
        for mapping in value if isinstance(value, list) else [value]:
            if not isinstance(mapping, dict):
                raise NotYaml(f"only mappings can be merged{_at(event)}")
            owner.merged.append(mapping)


def _key(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def _scalar(event: Any) -> Any:
    text: str = event.value
    tag = (event.tag or "").removeprefix(_TAGS)
    if tag in ("str", "!") or (not tag and not event.implicit[0]):
        return text
    if tag and tag not in ("int", "float", "bool", "null"):
        raise NotYaml(f"the tag {event.tag!r} is not supported{_at(event)}")
    if text in _PLAIN:
        return _PLAIN[text]
    if text[:1] in "+-.0123456789":
        if _INT.fullmatch(text):
            return int(text)
        if _FLOAT.fullmatch(text):
            number = float(text)
            return number if math.isfinite(number) else text
    return text


def _at(event: Any) -> str:
    mark = event.start_mark
    return f" (line {mark.line + 1}, column {mark.column + 1})"
