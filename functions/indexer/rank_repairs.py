"""Metrics that are not ranked, found and ranked by a rebuild, beside the indexer.

What must be there is spelled as RANK items (:mod:`indexer.expected`); rows and segments have the
same values. To rank what is ranked already does no harm, and nothing has to be taken back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import islice
from typing import Final

from indexer import rank_rows, settled, writes
from indexer.expected import Finding
from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.table import table
from mlcore.models.base import Item
from mlcore.models.index import RankMetric
from mlcore.models.runs import Run
from mlcore.repos.document import Owner
from mlcore.repos.runs import ranks

TOGETHER: Final = 50


def not_ranked(experiment_id: str, findings: Sequence[Finding]) -> list[Finding]:
    """Without RANK items of a run that are not there, where rows or a segment have the value."""
    lacking = {_key(one): ranks.ranked_of(_wanted(one)) for one in findings if is_lacking(one)}
    ranked = ranks.are_ranked(experiment_id, lacking) if lacking else set()
    return [one for one in findings if not (is_lacking(one) and _key(one) in ranked)]


def rank(run: Owner, findings: Iterable[Finding]) -> None:
    """Ranks the metrics of a run that are not."""
    lacking = {_key(one) for one in findings if is_lacking(one)}
    item = table.get(keys.run(*run)) if lacking else None
    ranked = None if item is None else rank_rows.of_run(Run.of(item), lacking)
    if ranked is not None:
        rank_rows.look(rank_rows.put({run[0]: [ranked]}))


def renew(experiment_id: str, run_ids: Iterable[str]) -> None:
    """Ranks the metrics of runs that an earlier version ranked, and takes its METRIC and RANK items
    away, also where the run is gone. Those of runs that go on go when they rest."""
    waiting = iter(run_ids)
    while together := list(islice(waiting, TOGETHER)):
        places = [keys.run(experiment_id, run_id) for run_id in together]
        items = [Run.of(item) for item in table.batch_get(places) if item is not None]
        going_on = {item.run_id for item in items if settled.goes_on(item)}
        resting = [item for item in items if item.run_id not in going_on]
        ranked = [one for one in map(rank_rows.of_run, resting) if one is not None]
        rank_rows.look(rank_rows.put({experiment_id: ranked}))
        runs = [(experiment_id, run_id) for run_id in together if run_id not in going_on]
        found = table.parallel([partial(settled.earlier_ranks, run) for run in runs])
        writes.apply(map(settled.without_earlier, runs, found))


def is_lacking(finding: Finding) -> bool:
    """Whether a metric seems not to be ranked. One that is outside its run, which has no version,
    needs a RANK item."""
    wanted = finding.wanted
    if wanted is None or finding.found is not None:
        return False
    is_rank = Item.of(wanted).type == RankMetric.pattern.name
    return is_rank and RankMetric.of(wanted).version is not None


def _key(finding: Finding) -> str:
    return RankMetric.of(_wanted(finding)).key


def _wanted(finding: Finding) -> Raw:
    return finding.wanted or {}
