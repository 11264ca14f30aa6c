"""Candidates for a search of traces (the keys of traces that may match), from the indexes of an
experiment; reads no trace.

Local indexes are strongly consistent. The items of the full-text index are written by the indexer.
Traces whose items in this index may be stale have a mark, and the marks must be read
(:mod:`.marked_traces`) *before* these items.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mlcore.db import keys
from mlcore.models.base import KEY
from mlcore.models.search_index import Fts
from mlcore.repos import text_candidates
from mlcore.repos.index_candidates import TRACE, Candidates, Entries
from mlcore.repos.text_candidates import Foreseen
from mlcore.repos.traces.traces_by_time import Through, Window, bounds_of
from mlcore.search import text_fields
from mlcore.search.run_plan import NamePrefix, TextLookups
from mlcore.search.text_fields import IndexedFields
from mlcore.search.text_tokens import WORD
from mlcore.search.trace_plan import Access, TraceIds, TracesOfRun, WholeValues

Links = Mapping[str, Iterable[str]]
"""Ids of the traces that are linked to a run, by run id."""


class _Known(Entries):
    """Candidates whose keys are known without reading an index."""

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
    indexed: IndexedFields | None,
    links: Links,
    foreseen: Foreseen,
) -> list[Candidates]:
    """Returns candidates for a condition. Each of the candidates refers to every trace that can
    meet the condition, except perhaps traces that the indexer has not processed. Returns an empty
    list if no index can answer the condition.

    Args:
        access: how an index answers the condition.
        indexed: the fields of traces that the experiment's full-text index covers completely; None
            if it must not be used.
        links: the ids of the linked traces, for every run in the filter.
        foreseen: the lists of the full-text index that the search has read ahead.
    """
    name = type(access).__name__
    match access:
        case TraceIds(trace_ids):
            return [Candidates(name, _Known(experiment_id, trace_ids))]
        case NamePrefix(begin, whole):
            prefix = keys.lsi4_trace_name_prefix(begin) if whole else keys.lsi4_trace_begin(begin)
            entries = Entries(experiment_id, index="LSI4", prefix=prefix, attributes=KEY)
            return [Candidates(name, entries)]
        case WholeValues(field, values):
            if indexed is None:
                return []
            return [Candidates(name, *(_holding(experiment_id, field, value) for value in values))]
        case TracesOfRun(run_id):
            if indexed is None:
                return []
            made = _holding(experiment_id, text_fields.SOURCE_RUN, run_id)
            return [Candidates(name, made, _Known(experiment_id, links[run_id]))]
        case TextLookups():
            return text_candidates.candidates(experiment_id, access, indexed, TRACE, foreseen)
    raise TypeError(access)


def all_in_window(experiment_id: str, through: Through, window: Window) -> Entries:
    """Returns the traces of an experiment in a range of request times, newest first, as index
    entries to read.

    Args:
        through: an index that contains every wanted trace.
    """
    return Entries(
        experiment_id,
        index=through.name,
        between=bounds_of(through, window) or ("\0", "\0"),
        descending=True,
        attributes=KEY,
    )


def _holding(experiment_id: str, field: str, value: str) -> Entries:
    level = text_fields.key_level(WORD, field)
    return Entries(
        experiment_id,
        prefix=keys.fts_of_type_prefix(level, value, TRACE),
        attributes=[Fts.entity_type, Fts.entity_id],
    )
