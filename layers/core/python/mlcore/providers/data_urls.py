"""Parses data URLs, in which messages embed images."""

from __future__ import annotations

import re
from typing import Final

_DATA: Final = re.compile(r"data:(?P<mime>[^;,]+);base64,(?P<data>.*)", re.DOTALL)


def base64_parts(url: str) -> tuple[str, str] | None:
    """Returns the media type and the Base64 text of a data URL; None for any other URL."""
    match = _DATA.fullmatch(url)
    return None if match is None else (match["mime"], match["data"])
