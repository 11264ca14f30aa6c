"""Caches running runs as this process wrote them last."""

from __future__ import annotations

from typing import Final, NamedTuple

from mlcore.db.expression import Raw
from mlcore.entities.experiments import Experiment
from mlcore.entities.runs import RUNNING
from mlcore.models.base import MetaItem
from mlcore.models.runs import Run as RunItem
from mlcore.process_cache import ProcessCache
from mlcore.repos.runs.core import run_maps as run_children
from mlcore.repos.runs.core import runs
from mlcore.repos.runs.core.runs import StoredRun

KNOWN_BYTES: Final = 16_000
"""Maximum bytes of texts of a cached run; larger runs are read."""
KNOWN_SECONDS: Final = 600.0


class CachedRun(NamedTuple):
    """A run's item and experiment as they were after this process's last write of the run."""

    experiment: Experiment
    item: Raw


def _weigh(cached: CachedRun) -> int:
    """Returns an estimate of how many bytes a cached run takes in memory: the item's attributes,
    its experiment, and its maps, whose entries are Python objects unless the map is one text."""
    tags = sum(len(key) + len(value) + 150 for key, value in cached.experiment.tags.items())
    texts = (
        2 if all(map_entry.is_text(cached.item) for map_entry in run_children.MAPS.values()) else 12
    )
    return 9_500 + tags + texts * (MetaItem.of(cached.item).bytes or 0)


_known: ProcessCache[str, CachedRun] = ProcessCache(
    "run as last written", seconds=KNOWN_SECONDS, weigh=_weigh
)


def cached_run(run_id: str, workspace: str) -> StoredRun | None:
    """Returns a running run as this process wrote it last, without a request; None if the cache
    does not have it or it is in another workspace. Other processes may have written it since."""
    cached = _known.get(run_id)
    if cached is None or cached.experiment.workspace != workspace:
        return None
    return runs.of_item(cached.item, cached.experiment)


def cache_run(experiment: Experiment, item: Raw) -> None:
    """Caches a run that was just written, if it is still running and small enough."""
    run, meta = RunItem.of(item), MetaItem.of(item)
    if run.status != RUNNING or meta.overflow or (meta.bytes or 0) > KNOWN_BYTES:
        _known.pop(run.run_id)
        return
    before = _known.get(run.run_id)
    if before is None or MetaItem.of(before.item).version < meta.version:
        _known.put(run.run_id, CachedRun(experiment, item))


def forget_run(run_id: str) -> None:
    _known.pop(run_id)
