"""Reads which traces of an experiment the indexer has not processed yet: those with a mark, a key
in LSI1. :mod:`.marks` says which writes set one.

Packs of spans have marks, too. A search must read the marks *before* the items that the indexer
writes.
"""

from __future__ import annotations

from typing import Final

from mlcore.db import keys
from mlcore.db.keys import Key
from mlcore.db.table import key_of_item
from mlcore.models.base import KEY
from mlcore.repos.index_candidates import Entries

MOST_SEARCHED: Final = 1000
"""With more marked traces and packs of spans than this, a search does not use the indexes that the
indexer writes."""


def for_search(experiment_id: str) -> set[Key] | None:
    """Returns the keys of an experiment's traces that the indexer has not processed yet, or of
    whose spans it has not processed some; None if there are more than :data:`MOST_SEARCHED` marks.
    One Query."""
    entries = _entries(experiment_id)
    entries.read(MOST_SEARCHED + 1)
    return set(map(keys.trace_of, entries.candidate_keys())) if entries.done else None


def every(experiment_id: str) -> list[Key]:
    """Returns the keys of all of an experiment's traces and packs of spans that the indexer has not
    processed yet."""
    entries = _entries(experiment_id)
    entries.read_all()
    return list(map(key_of_item, entries.items))


def _entries(experiment_id: str) -> Entries:
    return Entries(experiment_id, index="LSI1", prefix=keys.lsi1_trace_prefix(), attributes=KEY)
