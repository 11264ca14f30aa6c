"""What finds runs and logged models by their ids: the reference of a run (``RUN#REF``), and the
workspace that the item of a logged model names, which must be that of its experiment.

No stream record leads to the repair of either, so ``verify`` never calls them late. Releases before
this one left both wrong: the reference of a restored run could expire, and an interrupted move of
an experiment to another workspace could leave logged models behind.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from itertools import chain

from indexer import run_scan
from indexer.verification import expected_items
from indexer.verification.expected_items import ItemDifference
from mlcore.db import keys
from mlcore.db.expression import ConditionExpression, Update
from mlcore.db.keys import Key
from mlcore.db.table import (
    Check,
    ItemUpdate,
    Operation,
    Put,
    TransactionFailed,
    key_of_item,
    table,
)
from mlcore.ids import new_ulid, now_ms
from mlcore.models.base import Item
from mlcore.models.experiments import Experiment
from mlcore.models.logged_models import LoggedModel
from mlcore.models.runs import Run, RunReference
from mlcore.repos.runs.core import creations

TOGETHER = 100
"""Number of references that are read in one request."""


def differences(experiment_id: str) -> list[ItemDifference]:
    """Returns the references that runs of an experiment lack, and its logged models that name
    another workspace. One BatchGetItem per hundred runs, and a Query of the logged models."""
    return [*_references(experiment_id), *_models(experiment_id)]


def repair(experiment_id: str) -> list[ItemDifference]:
    """Puts missing references of an experiment's runs back, and writes the experiment's workspace
    to its logged models. Returns what was wrong and is repaired."""
    repaired = []
    for difference in chain(_references(experiment_id), _models(experiment_id)):
        # If it fails, nothing is to be repaired: the run or model was removed, the reference is
        # back, or the experiment has moved, which names the workspace of its models.
        with contextlib.suppress(TransactionFailed):
            table.transact(_repairing(experiment_id, difference), new_ulid())
            repaired.append(difference)
    return repaired


def _references(experiment_id: str) -> Iterator[ItemDifference]:
    pk = keys.experiment(experiment_id).pk
    run_ids = [keys.parse(pk, sort_key).fields["run_id"] for sort_key in run_scan.run_sort_keys(pk)]
    for at in range(0, len(run_ids), TOGETHER):
        together = run_ids[at : at + TOGETHER]
        lacking = _absent([keys.run_ref(run_id) for run_id in together])
        suspects = [run_id for run_id in together if keys.run_ref(run_id) in lacking]
        # A run that is removed at this moment loses its item first, then its reference.
        removed = _absent([keys.run(experiment_id, run_id) for run_id in suspects])
        for run_id in suspects:
            if keys.run(experiment_id, run_id) not in removed:
                yield _reference(experiment_id, run_id)


def _absent(wanted: Sequence[Key]) -> set[Key]:
    items = table.batch_get(wanted) if wanted else []
    return {key for key, item in zip(wanted, items, strict=True) if item is None}


def _reference(experiment_id: str, run_id: str) -> ItemDifference:
    """Returns the difference for a run without a reference. The reference has no TTL, also if the
    run has one: the run may be restored meanwhile, and if it expires, the indexer deletes the
    reference."""
    wanted = creations.reference(experiment_id, run_id)
    key = keys.run_ref(run_id)
    return ItemDifference(expected_items.MISSING, key, wanted, None, (run_id, None))


def _models(experiment_id: str) -> Iterator[ItemDifference]:
    item = table.get(keys.experiment(experiment_id))
    if item is None:
        return
    workspace = Experiment.of(item).workspace
    for model in table.query_all(key_of_item(item).pk, prefix=keys.LOGGED_MODEL.sk.prefix()):
        if Item.of(model).type != keys.LOGGED_MODEL.name:
            continue
        if LoggedModel.of(model).workspace != workspace:
            wanted = {
                **model,
                LoggedModel.workspace.attr_name: LoggedModel.workspace.raw(workspace),
            }
            key = key_of_item(model)
            yield ItemDifference(expected_items.STALE, key, wanted, model, (None, None))


def _repairing(experiment_id: str, difference: ItemDifference) -> list[Operation]:
    """Returns the transaction that repairs a difference. It fails if the run was removed or its
    reference is back, or if the experiment or the logged model was moved or removed."""
    condition = ConditionExpression()
    if difference.stored is None and difference.wanted is not None:
        run_id = RunReference.of(difference.wanted).run_id
        condition.require_exists(Run.PK)
        absent = ConditionExpression()
        absent.require_absent(RunReference.PK)
        return [
            Check(keys.run(experiment_id, run_id), condition),
            Put(difference.wanted, absent),
        ]
    workspace = LoggedModel.of(difference.wanted or {}).workspace
    condition.require_equal(Experiment.workspace, workspace)
    change = Update()
    change.set(LoggedModel.workspace, workspace)
    change.set(LoggedModel.updated_at, now_ms())
    change.add(LoggedModel.version, 1)
    change.require_exists(LoggedModel.PK)
    return [
        Check(keys.experiment(experiment_id), condition),
        ItemUpdate(difference.key, change),
    ]
