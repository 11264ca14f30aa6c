"""All that an item of the table says, as one text to search in."""

from __future__ import annotations

import json
import zlib
from base64 import b64decode
from typing import Any


def text_of(item: dict[str, Any]) -> str:
    """All of an item as text, also what is compressed in it.

    Args:
        item: attribute values by name, such as ``{"B": bytes}``; text in B is base64.
    """
    unpacked = []
    for value in item.values():
        if "B" in value:
            raw = value["B"] if isinstance(value["B"], bytes) else b64decode(value["B"])
            try:
                unpacked.append(zlib.decompress(raw).decode(errors="replace"))
            except zlib.error:
                unpacked.append(raw.decode(errors="replace"))
    return json.dumps(item, default=str, ensure_ascii=False) + "".join(unpacked)
