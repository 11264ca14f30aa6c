"""How often Python looks for cycles of garbage."""

from __future__ import annotations

import gc
from typing import Final

UNCOLLECTED: Final = 50_000
"""How many objects may be made before Python looks for cycles among them. Answers and batches of
records are made of tens of thousands that have none; its own 700 cost a fifth of the time of a
large answer, and a third of the time in which records are read."""


def collect_seldom() -> None:
    """For a function that makes many objects at once."""
    gc.set_threshold(UNCOLLECTED)
