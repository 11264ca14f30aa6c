"""The entity of a tag."""

from __future__ import annotations

from typing import NamedTuple


class Tag(NamedTuple):
    key: str
    value: str
