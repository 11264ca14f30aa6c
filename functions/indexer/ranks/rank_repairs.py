"""Finds metrics of runs that are missing in the index of metric values (ranks), and adds them. For
a rebuild that runs at the same time as the indexer.

:mod:`indexer.verification.expected_items` requires a RANK item for each metric; a value in rows or
in a segment counts as one. Adding a metric twice is harmless.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from indexer.ranks import rank_rows
from indexer.verification.expected_items import ItemDifference
from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.table import table
from mlcore.models.base import Item
from mlcore.models.runs import Run
from mlcore.models.search_index import RankMetric
from mlcore.repos.document import Owner
from mlcore.repos.runs.ranks import metric_ranks


def without_ranked(experiment_id: str, findings: Sequence[ItemDifference]) -> list[ItemDifference]:
    """Returns the findings of a verification of index items, without those that report a missing
    RANK item although the index of metric values has the value in rows or in a segment."""
    missing = {
        _key(finding): metric_ranks.ranked_of(_wanted(finding))
        for finding in findings
        if is_lacking(finding)
    }
    ranked = metric_ranks.are_ranked(experiment_id, missing) if missing else set()
    return [
        finding for finding in findings if not (is_lacking(finding) and _key(finding) in ranked)
    ]


def rank(run: Owner, findings: Iterable[ItemDifference]) -> None:
    """Adds to the index of metric values, as unsorted rows, the metrics of a run whose RANK items
    are reported as missing."""
    missing = {_key(finding) for finding in findings if is_lacking(finding)}
    item = table.get(keys.run(*run)) if missing else None
    rows = None if item is None else rank_rows.of_run(Run.of(item), missing)
    if rows is not None:
        rank_rows.compact_if_due(rank_rows.put({run[0]: [rows]}))


def is_lacking(finding: ItemDifference) -> bool:
    """Whether a difference found by verification is a missing RANK item which the index of metric
    values may have replaced by an entry in its rows or segments. That is possible for a metric
    stored in the run item; the RANK item of a metric stored outside it has no ``version``."""
    wanted = finding.wanted
    if wanted is None or finding.stored is not None:
        return False
    is_rank = Item.of(wanted).type == RankMetric.pattern.name
    return is_rank and RankMetric.of(wanted).version is not None


def _key(finding: ItemDifference) -> str:
    return RankMetric.of(_wanted(finding)).key


def _wanted(finding: ItemDifference) -> Raw:
    return finding.wanted or {}
