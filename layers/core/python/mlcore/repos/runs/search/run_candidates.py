"""Candidates for a search of runs (the keys of runs that may match), from the indexes of an
experiment; reads no run.

Local indexes are strongly consistent. RANK, DLINK and FTS items (index entries of values, datasets
and texts) are written by the indexer; runs whose items may be stale have a mark, and the marks must
be read (:mod:`mlcore.repos.runs.core.marked_runs`) *before* those items.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlcore.db import keys
from mlcore.models.base import Item
from mlcore.models.search_index import DatasetLink, RankParam
from mlcore.repos.index_candidates import Candidates, Entries, own_sort_keys
from mlcore.search.grammar import Comparison
from mlcore.search.match import value_test
from mlcore.search.run_plan import (
    Access,
    DatasetLinks,
    NamePrefix,
    ParamTexts,
    ParamValue,
    Status,
)


def is_asynchronous(access: Access) -> bool:
    """Whether the index entries by which a search finds the runs that meet a condition are written
    by the indexer, so that they may lag.

    Args:
        access: by which index, and by which of its entries, the search finds the runs.
    """
    return not isinstance(access, NamePrefix | Status)


def candidates(experiment_id: str, access: Access) -> list[Candidates]:
    """Returns candidates for a condition that is neither on a text
    (:class:`mlcore.search.run_plan.TextLookups`) nor on a metric. Their entries refer to every run
    that can meet the condition, except perhaps runs that the indexer has not processed.

    Args:
        access: how an index answers the condition.
    """
    return [Candidates(type(access).__name__, _entries(experiment_id, access))]


def _entries(experiment_id: str, access: Access) -> Entries:
    match access:
        case ParamValue(key, value):
            return _params(experiment_id, keys.rank_param_value_prefix(key, value))
        case ParamTexts(condition, begin):
            return _params(
                experiment_id, keys.rank_param_begin(condition.key, begin), value_test(condition)
            )
        case DatasetLinks(condition):
            return _links(experiment_id, condition)
        case Status(status):
            return _local(experiment_id, "LSI3", keys.lsi3_run_prefix(status))
        case NamePrefix(text, whole):
            prefix = keys.lsi4_run_name_prefix(text) if whole else keys.lsi4_run_begin(text)
            return _local(experiment_id, "LSI4", prefix)
    raise TypeError(access)


def _params(experiment_id: str, prefix: str, holds: Callable[[Any], bool] | None = None) -> Entries:
    """Returns the entries of params with a prefix, and with a value for which ``holds`` is true."""
    param = RankParam.of
    keep = None if holds is None else lambda entry: holds(param(entry).value)
    return Entries(
        experiment_id,
        keep=keep,
        refer=lambda entries: keys.runs_of_rank_params(own_sort_keys(entries)),
        prefix=prefix,
        attributes=[RankParam.SK] if holds is None else [RankParam.SK, RankParam.value],
    )


def _links(experiment_id: str, condition: Comparison) -> Entries:
    """Returns the entries of all DLINK items (dataset links) of the experiment that meet a
    condition; they are ordered by run."""
    holds, link = value_test(condition), DatasetLink.of
    attributes_and_test, keep = [DatasetLink.run_id], None
    if condition.key == "name":
        attributes_and_test, keep = (
            [*attributes_and_test, DatasetLink.name],
            lambda entry: holds(link(entry).name),
        )
    elif condition.key == "digest":
        attributes_and_test, keep = (
            [*attributes_and_test, DatasetLink.digest],
            lambda entry: holds(link(entry).digest),
        )
    prefix = keys.dataset_links_prefix()
    return Entries(experiment_id, keep=keep, prefix=prefix, attributes=attributes_and_test)


def runs_of_stages(experiment_id: str, stages: Sequence[str]) -> Entries:
    """Returns the runs of an experiment by start time, newest first, as index entries to read:
    those of the lifecycle stage in ``stages`` if it is exactly one, else all."""
    if len(stages) == 1:
        prefix = keys.lsi1_run_prefix(stages[0])
        return _local(experiment_id, "LSI1", prefix, descending=True)
    return _local(experiment_id, "LSI2", keys.lsi2_run_prefix(), descending=True)


def _local(experiment_id: str, index: str, prefix: str, *, descending: bool = False) -> Entries:
    return Entries(
        experiment_id,
        index=index,
        prefix=prefix,
        descending=descending,
        attributes=[Item.SK],
        refer=own_sort_keys,
    )
