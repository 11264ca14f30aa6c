"""RANK and DLINK items: what one entry of a run's map is in the indexes of its experiment.

Pure functions from a run, a map, a key and a text. The place of an index item holds the value, so
a changed value is another item.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.models.index import DatasetLink, RankMetric, RankParam
from mlcore.repos.document import Owner
from mlcore.repos.runs import children as run_children
from mlcore.repos.runs import points


class Index(NamedTuple):
    """How the entries of one map are indexed."""

    place: Callable[[Owner, str, str], Key]
    """(run, key, text) → where the index item is."""
    item: Callable[[Owner, str, str, int | None], Raw]
    """(run, key, text, version of the run) → the index item."""


def place_of(run: Owner, attribute: str, key: str, text: str | None) -> Key | None:
    """Where the index item of an entry is; None for an absent entry."""
    return None if text is None else INDEXES[attribute].place(run, key, text)


def _metric_place(run: Owner, key: str, text: str) -> Key:
    return keys.rank_metric(run[0], key, points.parse_latest(key, text).value, run[1])


def _metric(run: Owner, key: str, text: str, version: int | None) -> Raw:
    value = points.parse_latest(key, text).value
    place = keys.rank_metric(run[0], key, value, run[1])
    model = RankMetric(
        PK=place.pk, SK=place.sk, key=key, value=value, run_id=run[1], version=version
    )
    return model.serialize()


def _param_place(run: Owner, key: str, text: str) -> Key:
    return keys.rank_param(run[0], key, text, run[1])


def _param(run: Owner, key: str, text: str, version: int | None) -> Raw:
    place = _param_place(run, key, text)
    model = RankParam(PK=place.pk, SK=place.sk, key=key, value=text, run_id=run[1], version=version)
    return model.serialize()


def _link_place(run: Owner, key: str, text: str) -> Key:
    (reference,) = run_children.dataset_inputs({key: text})
    return keys.dataset_link(run[0], run[1], reference.name, reference.digest)


def _link(run: Owner, key: str, text: str, version: int | None) -> Raw:
    (reference,) = run_children.dataset_inputs({key: text})
    place = keys.dataset_link(run[0], run[1], reference.name, reference.digest)
    model = DatasetLink(
        PK=place.pk,
        SK=place.sk,
        run_id=run[1],
        name=reference.name,
        digest=reference.digest,
        version=version,
    )
    return model.serialize()


INDEXES: Mapping[str, Index] = {
    "metrics": Index(_metric_place, _metric),
    "params": Index(_param_place, _param),
    "inputs": Index(_link_place, _link),
}
"""By map attribute; the other maps have no index."""

OUTSIDE_MAPS = {
    keys.RUN_METRIC.name: "metrics",
    keys.RUN_PARAM.name: "params",
    keys.RUN_INPUT.name: "inputs",
}
"""The indexed maps by the type of the child items that hold their values outside."""

RANKED_MAPS = frozenset(("metrics",))
"""The maps whose entries are ranked in rows and segments, and have no child items."""
