"""Which fields of an experiment's runs and traces its full-text index covers, and which it will
cover.

``E#META`` has both: searches may rely on ``fts``; ``fts_next`` is set during a rebuild, when the
indexer also maintains these fields while the rebuild adds those of existing runs. So a search uses
the index only when it is complete, and a changed setting takes effect for an experiment with its
next rebuild.
"""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.expression import Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import table
from mlcore.models.experiments import Experiment
from mlcore.repos.settings.cached_setting import Setting
from mlcore.search import text_fields
from mlcore.search.text_fields import IndexedFields

_setting: Setting[IndexedFields] = Setting(text_fields.SETTING, text_fields.parse_setting)
"""Only new experiments and rebuilds read it."""


def covered_fields(experiment: Raw) -> IndexedFields | None:
    """Returns the fields that an experiment's full-text index covers completely; None if searches
    must not use it."""
    return text_fields.decode(Experiment.of(experiment).fts)


def maintained_fields(experiment: Raw) -> IndexedFields | None:
    """Returns the fields that the indexer must keep in an experiment's full-text index; None if
    there is no index that it must keep."""
    item = Experiment.of(experiment)
    both = [text_fields.decode(text) for text in (item.fts, item.fts_next)]
    there = [index for index in both if index is not None]
    return IndexedFields(frozenset().union(*(index.fields for index in there))) if there else None


def is_outdated(experiment: Raw) -> bool:
    """Whether an experiment's full-text index has a form that is neither read nor maintained any
    more, so that it must be rebuilt."""
    item = Experiment.of(experiment)
    return item.fts is not None and maintained_fields(experiment) is None


def configured_fields(*, remembered: bool = True) -> IndexedFields:
    """Returns the fields that the setting ``fts_fields`` names; one GetItem per minute and process.

    Args:
        remembered: whether to use the cached value. If False, the setting is read.
    """
    return _setting.current() if remembered else _setting.read()


def begin_rebuild(experiment_id: str) -> IndexedFields:
    """Starts a rebuild of an experiment's full-text index: from now on the indexer maintains the
    fields that the setting ``fts_fields`` names. Returns these fields. Raises ConditionFailed if
    there is no such experiment."""
    fields = configured_fields(remembered=False)
    update = Update()
    update.set(Experiment.fts_next, fields.encode())
    update.require_exists(Experiment.PK)
    table.update(keys.experiment(experiment_id), update)
    return fields


def finish_rebuild(experiment_id: str, built: IndexedFields) -> bool:
    """Ends a rebuild of an experiment's full-text index: searches may rely on the fields that it
    built. Returns False if a rebuild of other fields has started since, if another call has ended
    the rebuild, or if the experiment was removed."""
    update = Update()
    update.set(Experiment.fts, built.encode())
    update.remove(Experiment.fts_next)
    update.require_equal(Experiment.fts_next, built.encode())
    try:
        table.update(keys.experiment(experiment_id), update)
    except ConditionFailed:
        return False
    return True
