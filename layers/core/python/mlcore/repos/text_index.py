"""Which texts of an experiment's runs its full-text index holds, and which it is to hold.

``E#META`` says both. ``fts`` is what searches may rely on; while ``fts_next`` is there, the indexer
maintains its texts, too, and a rebuild adds those of the runs that were there before. So an index
is asked only when it is whole, and a change of the setting reaches an experiment with its rebuild.
"""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.expression import Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import table
from mlcore.models.experiments import Experiment
from mlcore.repos.settings.setting import Setting
from mlcore.search import text_fields
from mlcore.search.text_fields import Indexed

_setting: Setting[Indexed] = Setting(text_fields.SETTING, text_fields.wanted)
"""Only new experiments and rebuilds follow it."""


def complete(experiment: Raw) -> Indexed | None:
    """The texts that the index holds completely; None if it must not be asked."""
    return text_fields.decode(Experiment.of(experiment).fts)


def maintained(experiment: Raw) -> Indexed | None:
    """The texts that the indexer has to follow; None for none, not even names."""
    item = Experiment.of(experiment)
    both = [text_fields.decode(text) for text in (item.fts, item.fts_next)]
    there = [one for one in both if one is not None]
    return Indexed(frozenset().union(*(one.fields for one in there))) if there else None


def is_outdated(experiment: Raw) -> bool:
    """Whether all that the index holds was made by other rules: nobody asks it or follows it until
    it is rebuilt."""
    item = Experiment.of(experiment)
    return item.fts is not None and maintained(experiment) is None


def wanted(*, remembered: bool = True) -> Indexed:
    """What the setting asks for; one GetItem in a while."""
    return _setting.current() if remembered else _setting.read()


def begin(experiment_id: str) -> Indexed:
    """Before a rebuild: from now on the indexer maintains what the setting asks for."""
    asked = wanted(remembered=False)
    update = Update()
    update.set(Experiment.fts_next, asked.encode())
    update.require_exists(Experiment.PK)
    table.update(keys.experiment(experiment_id), update)
    return asked


def finish(experiment_id: str, built: Indexed) -> bool:
    """After a rebuild: what it built may be relied on; False if another rebuild began since."""
    update = Update()
    update.set(Experiment.fts, built.encode())
    update.remove(Experiment.fts_next)
    update.require_equal(Experiment.fts_next, built.encode())
    try:
        table.update(keys.experiment(experiment_id), update)
    except ConditionFailed:
        return False
    return True
