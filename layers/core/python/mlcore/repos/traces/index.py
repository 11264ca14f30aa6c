"""Candidates for a search of traces, out of the indexes of an experiment; knows no filter and reads
no trace.

Local indexes are strongly consistent. FTS items follow the traces through the stream: the traces
that they may be wrong about are marked in LSI1, which must be read *before* them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.models.base import KEY
from mlcore.models.index import Fts
from mlcore.repos import text_lists
from mlcore.repos.runs.index import TRACE, Candidates, Entries
from mlcore.repos.text_lists import Foreseen
from mlcore.repos.traces.pages import Through, Window, bounds_of
from mlcore.search import text_fields
from mlcore.search.plan import NamePrefix, Text
from mlcore.search.text import WORD
from mlcore.search.text_fields import Indexed
from mlcore.search.trace_plan import Access, Ids, OfRun, Whole

MAX_PENDING = 1000
"""With more traces pending than this, what the indexer writes is no help."""

Links = Mapping[str, Iterable[str]]
"""The ids of the traces that are linked to a run, by run id."""


class _Known(Entries):
    """Entries that need not be read."""

    def __init__(self, experiment_id: str, trace_ids: Iterable[str]) -> None:
        super().__init__(experiment_id)
        of_type = {Fts.entity_type.attr_name: Fts.entity_type.raw(TRACE)}
        entity_id = Fts.entity_id
        self.items = [
            {**of_type, entity_id.attr_name: entity_id.raw(trace_id)}
            for trace_id in dict.fromkeys(trace_ids)
        ]
        self.done = True


def candidates(
    experiment_id: str,
    access: Access,
    indexed: Indexed | None,
    links: Links,
    foreseen: Foreseen,
) -> list[Candidates]:
    """Each of them names every trace that an access holds; none if no index does.

    Args:
        indexed: the texts of traces that the full-text index of the experiment holds completely.
        links: those of all runs that are asked for.
    """
    name = type(access).__name__
    match access:
        case Ids(trace_ids):
            return [Candidates(name, _Known(experiment_id, trace_ids))]
        case NamePrefix(begin, whole):
            prefix = keys.lsi4_trace_name_prefix(begin) if whole else keys.lsi4_trace_begin(begin)
            entries = Entries(experiment_id, index="LSI4", prefix=prefix, attributes=KEY)
            return [Candidates(name, entries)]
        case Whole(field, values):
            if indexed is None:
                return []
            return [Candidates(name, *(_holding(experiment_id, field, one) for one in values))]
        case OfRun(run_id):
            if indexed is None:
                return []
            made = _holding(experiment_id, text_fields.SOURCE_RUN, run_id)
            return [Candidates(name, made, _Known(experiment_id, links[run_id]))]
        case Text():
            return text_lists.candidates(experiment_id, access, indexed, TRACE, foreseen)
    raise TypeError(access)


def listed(experiment_id: str, through: Through, window: Window) -> Entries:
    """All traces of a window by an index that holds all that are wanted, newest first."""
    return Entries(
        experiment_id,
        index=through.name,
        between=bounds_of(through, window) or ("\0", "\0"),
        descending=True,
        attributes=KEY,
    )


def pending(experiment_id: str) -> set[Key] | None:
    """The traces that the indexer has not followed yet; None if there are too many of them."""
    found = marked(experiment_id)
    found.read(MAX_PENDING + 1)
    return set(map(keys.trace_of, found.places())) if found.done else None


def marked(experiment_id: str) -> Entries:
    """Traces and packs of spans that the indexer has not followed yet."""
    return Entries(experiment_id, index="LSI1", prefix=keys.lsi1_trace_prefix(), attributes=KEY)


def every(entries: Entries) -> list[Raw]:
    """All entries of a range, however many."""
    while not entries.done:
        entries.read()
    return entries.items


def _holding(experiment_id: str, field: str, value: str) -> Entries:
    level = text_fields.level_of(WORD, field)
    return Entries(
        experiment_id,
        prefix=keys.fts_of_type_prefix(level, value, TRACE),
        attributes=[Fts.entity_type, Fts.entity_id],
    )
