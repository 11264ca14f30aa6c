"""Pictures that a message holds in a URL."""

from __future__ import annotations

import re
from typing import Final

_DATA: Final = re.compile(r"data:(?P<mime>[^;,]+);base64,(?P<data>.*)", re.DOTALL)


def base64_parts(url: str) -> tuple[str, str] | None:
    """The media type and the Base64 text; None for a URL that points elsewhere."""
    found = _DATA.fullmatch(url)
    return None if found is None else (found["mime"], found["data"])
