"""Makes RANK and DLINK items: the index items of single entries of a run's maps (params and dataset
inputs, and metrics outside the run item).

Pure functions from a run, a map, a key and a value. The value is part of the index item's key, so a
changed value has another item.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.models.search_index import DatasetLink, RankMetric, RankParam
from mlcore.repos.document import Owner
from mlcore.repos.runs.core import run_maps as run_children
from mlcore.repos.runs.history import latest_point_text


class Index(NamedTuple):
    """How to make the index items of the entries in one map of a run: RANK for metrics and params,
    DLINK for dataset inputs."""

    key_of: Callable[[Owner, str, str], Key]
    """(run, key, text) → the index item's key."""
    item: Callable[[Owner, str, str, int | None], Raw]
    """(run, key, text, version of the run) → the index item."""


def key_of(run: Owner, attribute: str, key: str, text: str | None) -> Key | None:
    """Returns the key of the item that indexes the entry ``key`` of a run's map ``attribute``, such
    as ``params``; None if the entry's value, ``text``, is None: the run has no such entry."""
    return None if text is None else INDEXES[attribute].key_of(run, key, text)


def _metric_key(run: Owner, key: str, text: str) -> Key:
    return keys.rank_metric(run[0], key, latest_point_text.parse_latest(key, text).value, run[1])


def _metric(run: Owner, key: str, text: str, version: int | None) -> Raw:
    value = latest_point_text.parse_latest(key, text).value
    item_key = keys.rank_metric(run[0], key, value, run[1])
    model = RankMetric(
        PK=item_key.pk, SK=item_key.sk, key=key, value=value, run_id=run[1], version=version
    )
    return model.serialize()


def _param_key(run: Owner, key: str, text: str) -> Key:
    return keys.rank_param(run[0], key, text, run[1])


def _param(run: Owner, key: str, text: str, version: int | None) -> Raw:
    index_key = _param_key(run, key, text)
    model = RankParam(
        PK=index_key.pk, SK=index_key.sk, key=key, value=text, run_id=run[1], version=version
    )
    return model.serialize()


def _link_key(run: Owner, key: str, text: str) -> Key:
    (reference,) = run_children.dataset_inputs({key: text})
    return keys.dataset_link(run[0], run[1], reference.name, reference.digest)


def _link(run: Owner, key: str, text: str, version: int | None) -> Raw:
    (reference,) = run_children.dataset_inputs({key: text})
    item_key = keys.dataset_link(run[0], run[1], reference.name, reference.digest)
    model = DatasetLink(
        PK=item_key.pk,
        SK=item_key.sk,
        run_id=run[1],
        name=reference.name,
        digest=reference.digest,
        version=version,
    )
    return model.serialize()


INDEXES: Mapping[str, Index] = {
    "metrics": Index(_metric_key, _metric),
    "params": Index(_param_key, _param),
    "inputs": Index(_link_key, _link),
}
"""How to make the index items of a run's entries, by map attribute; other maps have no index. RANK
items of metrics are put only for values outside their run item; all other metrics are ranked in
rows and segments."""

OUTSIDE_MAPS = {
    keys.RUN_METRIC.name: "metrics",
    keys.RUN_PARAM.name: "params",
    keys.RUN_INPUT.name: "inputs",
}
"""By item type of a child item that holds a value outside the run item: the map of that value."""

RANKED_MAPS = frozenset(("metrics",))
"""Maps whose entries are ranked in rows and segments, and have no child items inside their run."""
