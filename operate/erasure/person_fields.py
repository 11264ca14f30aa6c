"""Finds the fields of an item that name a user, and replaces the name by a pseudonym.

Only fields for the names of users are changed: a run, a param or a model may have the same name as
a person. Items are raw (DynamoDB JSON).
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from mlcore import reserved_tags
from mlcore.db.attribute_types import TextMapAttribute, text_of
from mlcore.db.deflate import compressed
from mlcore.db.expression import Raw
from mlcore.models.base import ChildItem, Item
from mlcore.models.by_type import MODELS

FIELDS: Final = frozenset(
    {
        *("created_by", "last_updated_by", "updated_by", "completed_by", "creator", "author"),
        *("user_id", "username", "users", "source_id", "owner", "lastUpdatedBy", "createdBy"),
    }
)
"""Attributes, and fields of JSON texts, that hold a user's name or a list of names."""
RECORDS: Final = frozenset({"guardrails", "bindings", "mappings"})
"""Attributes with a JSON list of records whose fields have no names; one of the fields is the
creator of the record."""
TAGS: Final = frozenset({reserved_tags.USER, reserved_tags.TRACE_USER})
"""Keys of tags and metadata whose value is a user's name."""


MAPS: Final = ("tags", "trace_metadata", "assessments")
"""Attributes with a map from key to text whose entries may name users. Params never change."""


def entry_changes(texts: Mapping[str, str], name: str, new: str) -> dict[str, str]:
    """Returns those entries of an item's map (such as tags) that contain the user's name, ``name``,
    with the pseudonym ``new`` in its place."""
    return {
        key: text for key, old in texts.items() if (text := _new_entry(key, old, name, new)) != old
    }


def attribute_changes(item: Raw, name: str, new: str) -> dict[str, Raw]:
    """Returns those attributes of an item that name the user ``name``, with the pseudonym ``new``
    in place of the name. Attributes that are maps are left out (:func:`entry_changes`)."""
    maps = {attribute.attr_name for attribute in _maps_of(item)}
    names_person = text_of(item, ChildItem.key.attr_name) in TAGS
    changes: dict[str, Raw] = {}
    for attribute, value in item.items():
        if attribute in maps or attribute in ("PK", "SK"):
            continue
        changed = _new_value(attribute, value, name, new)
        if attribute in ("text", "value") and names_person and value.get("S") == name:
            changed = {"S": new}
        if changed != value:
            changes[attribute] = changed
    return changes


def rewritten(item: Raw, name: str, new: str) -> Raw:
    """Returns the item with the pseudonym ``new`` in all fields that name the user."""
    changed = {**item, **attribute_changes(item, name, new)}
    for attribute in _maps_of(item):
        texts = attribute.of(item)
        entries = entry_changes(texts, name, new) if attribute.attr_name in MAPS else {}
        if entries:
            changed[attribute.attr_name] = attribute.like(item, {**texts, **entries})
    return changed


def mentions(item: Raw, name: str) -> bool:
    """Whether any text of a DynamoDB item contains the user name ``name`` as a word. In that text,
    the word may mean something other than the user."""
    # A dot may end a sentence or be part of a name.
    word = re.compile(rf"(?<![\w@+-])(?<!\w\.){re.escape(name)}(?![\w@+-]|\.\w)")
    maps = [
        text for attribute in _maps_of(item) for pair in attribute.of(item).items() for text in pair
    ]
    return any(word.search(text) for text in (*maps, *_texts(item)))


def _maps_of(item: Raw) -> Iterator[TextMapAttribute[Any]]:
    model = MODELS.get(text_of(item, Item.type.attr_name) or "")
    if model is None:
        return
    for attribute in model.get_attributes().values():
        if isinstance(attribute, TextMapAttribute) and attribute.attr_name in item:
            yield attribute


def _new_entry(key: str, old: str, name: str, new: str) -> str:
    if key in TAGS and old == name:
        return new
    return _new_json(old, name, new)


def _new_value(attribute: str, value: Raw, name: str, new: str) -> Raw:
    if "S" in value:
        text: str = value["S"]
        if attribute in FIELDS and text == name:
            return {"S": new}
        return {"S": _new_json(text, name, new, is_person=attribute in FIELDS | RECORDS)}
    if "B" in value:
        text = _unpacked(value["B"])
        changed = _new_json(text, name, new)
        return value if changed == text else {"B": compressed(changed.encode())}
    return value


def _unpacked(data: str | bytes) -> str:
    """Decompresses a text that was compressed with zlib; returns "" for other data. ``data`` is
    bytes, as in requests, or Base64, as in answers of DynamoDB."""
    try:
        raw = base64.b64decode(data) if isinstance(data, str) else bytes(data)
        return zlib.decompress(raw).decode()
    except (ValueError, zlib.error):
        return ""


def _new_json(text: str, name: str, new: str, *, is_person: bool = False) -> str:
    """Returns a JSON text with the pseudonym in its fields for users; any other text unchanged.

    Args:
        is_person: whether the elements of a list in the text are names.
    """
    if name not in text or text[:1] not in ("{", "["):
        return text
    try:
        content = json.loads(text)
    except ValueError:
        return text
    changed = _replaced_names(content, name, new, is_person=is_person)
    if changed == content:
        return text
    return json.dumps(changed, ensure_ascii=False, separators=(",", ":"))


def _replaced_names(content: Any, name: str, new: str, *, is_person: bool) -> Any:
    if isinstance(content, dict):
        return {
            key: _replaced_names(value, name, new, is_person=key in FIELDS or key in TAGS)
            for key, value in content.items()
        }
    if isinstance(content, list):
        return [_replaced_names(entry, name, new, is_person=is_person) for entry in content]
    return new if is_person and content == name else content


def _texts(value: Any) -> Iterator[str]:
    """Yields all texts of an attribute value or a whole item, also compressed ones and keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for entry in value:
            yield from _texts(entry)
    elif isinstance(value, dict):
        for kind, nested in value.items():
            yield kind
            yield from _texts(
                _unpacked(nested) if kind == "B" and not isinstance(nested, dict) else nested
            )
