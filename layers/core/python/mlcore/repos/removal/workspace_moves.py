"""Moves experiments, registered models, alerts and webhooks to another workspace, each in a
transaction. The caller handles permissions.
"""

from __future__ import annotations

import contextlib

from mlcore.db import keys
from mlcore.db.expression import ConditionExpression, Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.keys import Key
from mlcore.db.table import (
    Delete,
    ItemUpdate,
    Operation,
    Put,
    TransactionFailed,
    key_of_item,
    table,
)
from mlcore.entities.alerts import Alert
from mlcore.entities.webhooks import Webhook
from mlcore.ids import new_ulid, now_ms
from mlcore.models.base import Item
from mlcore.models.experiments import Experiment, ExperimentNameLock
from mlcore.models.logged_models import LoggedModel
from mlcore.models.registry import ModelHome, RegisteredModel
from mlcore.optimistic_retry import WriteConflict
from mlcore.prompts import is_prompt
from mlcore.repos import alerts
from mlcore.repos import webhooks as webhook_items
from mlcore.repos.files import location_list
from mlcore.repos.kubeflow_keys import list_keys, moved_keys
from mlcore.repos.registry import model_lifecycle, registered_models
from mlcore.webhooks import destination_values, secret_values


class NameTakenInTarget(Exception):
    """The target workspace already has an experiment or registered model of that name."""


def experiment(experiment_id: str, workspace: str) -> None:
    """Moves an experiment with its contents and its name to another workspace. May be killed
    anywhere and repeated. Raises NameTakenInTarget, and WriteConflict if it is renamed or moved
    meanwhile."""
    key = keys.experiment(experiment_id)
    raw = table.get(key)
    if raw is None or (item := Experiment.of(raw)).workspace == workspace:
        return
    name, old = item.name, item.workspace
    lock_place = keys.experiment_name_lock(workspace, name)
    lock = ExperimentNameLock(
        PK=lock_place.pk,
        SK=lock_place.sk,
        experiment_id=experiment_id,
        updated_at=now_ms(),
        version=1,
    )
    gsi2pk, gsi2sk = keys.gsi2_experiment(workspace, experiment_id)
    gsi5pk, gsi5sk = keys.gsi5_experiment(workspace, name)
    change = Update()
    change.set(Experiment.gsi2pk, gsi2pk)
    change.set(Experiment.gsi2sk, gsi2sk)
    change.set(Experiment.gsi5pk, gsi5pk)
    change.set(Experiment.gsi5sk, gsi5sk)
    change.set(Experiment.workspace, workspace)
    change.add_members(Experiment.former_workspaces, [old])
    change.set(Experiment.updated_at, now_ms())
    change.add(Experiment.version, 1)
    change.require_equal(Experiment.workspace, old)
    change.require_equal(Experiment.name, name)
    absent = ConditionExpression()
    absent.require_absent(ExperimentNameLock.PK)
    moved_number: list[Operation] = []
    if item.number is None:
        change.require_absent(Experiment.number)
    else:
        reference = moved_keys.reference_update(old, workspace)
        moved_number = [ItemUpdate(keys.context_ref(item.number), reference)]
    number = item.number or (int(experiment_id) if experiment_id.isdecimal() else None)
    moved_keys.require_external_id(change, Experiment.external_id, item.external_id)
    external = moved_keys.external_id_move(old, workspace, item.type, item.external_id, number)
    if not external.is_kept:
        change.remove(Experiment.external_id)
    # Before the experiment moves: after a kill in between, it is still here and the call is
    # repeated.
    _name_workspace(key.pk, workspace)
    try:
        table.transact(
            [
                Put(lock.serialize(), absent),
                Delete(keys.experiment_name_lock(old, name)),
                ItemUpdate(key, change),
                *location_list.of_moved(experiment_id, item.artifact_location, old),
                *moved_number,
                *external.operations,
            ],
            new_ulid(),
        )
    except TransactionFailed as failed:
        held = failed.items.get(0)
        is_other = held is not None and ExperimentNameLock.of(held).experiment_id != experiment_id
        if is_other and 2 not in failed.items:  # the experiment is as it was read, and stays
            _name_workspace(key.pk, old)
            raise NameTakenInTarget(name) from failed
        raise WriteConflict from failed
    _name_workspace(key.pk, workspace)  # of models that were created meanwhile


def registered_model(key: Key, workspace: str) -> None:
    """Moves a registered model to another workspace; the items of its versions stay in their
    partition. Raises NameTakenInTarget, and WriteConflict if it changes meanwhile."""
    raw = table.get(key)
    if raw is None:
        return
    stored, item = registered_models.of_item(raw), RegisteredModel.of(raw)
    target = keys.registered_model(workspace, stored.model.name)
    moved: Raw = {**raw, **model_lifecycle.names(workspace, stored.model.name)}
    for attribute, value in (
        (RegisteredModel.PK, target.pk),
        (RegisteredModel.SK, target.sk),
        (RegisteredModel.workspace, workspace),
        (RegisteredModel.home, stored.home),
        (RegisteredModel.version, item.version + 1),
        (RegisteredModel.updated_at, now_ms()),
    ):
        moved[attribute.attr_name] = attribute.raw(value)
    moved_number: list[Operation] = []
    # Before the model moves: after a kill in between, the model is still here and the call is
    # repeated.
    if not is_prompt(stored.model.tags):
        list_keys.make_versions_listable(stored.home, item.incarnation, workspace)
        if item.number is None:
            moved |= list_keys.unnumbered_item_keys(workspace, item.type, item.incarnation)
    if item.number is not None:
        old = item.workspace
        external_id, number = item.external_id, item.number
        external = moved_keys.external_id_move(old, workspace, item.type, external_id, number)
        if not external.is_kept:
            moved.pop(RegisteredModel.external_id.attr_name, None)
        listed = moved_keys.list_partitions(raw, old, workspace, item.type)
        moved |= {attribute.attr_name: attribute.raw(pk) for attribute, pk in listed}
        reference = moved_keys.reference_update(old, workspace, target)
        moved_number = [ItemUpdate(keys.context_ref(item.number), reference), *external.operations]
    absent, unchanged, mine = ConditionExpression(), ConditionExpression(), Update()
    absent.require_absent(RegisteredModel.PK)
    unchanged.require_equal(RegisteredModel.version, item.version)
    mine.set(ModelHome.model_pk, target.pk)
    mine.add(ModelHome.version, 1)
    mine.require_equal(ModelHome.incarnation, item.incarnation)
    try:
        table.transact(
            [
                Put(moved, absent),
                Delete(key, unchanged),
                ItemUpdate(keys.model_home(stored.home), mine),
                *moved_number,
            ],
            new_ulid(),
        )
    except TransactionFailed as failed:
        # If the model here has changed, too, the one in the target may be this model.
        if 1 not in failed.items and failed.items.get(0) is not None:
            if not is_prompt(stored.model.tags):
                list_keys.make_versions_listable(stored.home, item.incarnation, item.workspace)
            raise NameTakenInTarget(stored.model.name) from failed
        raise WriteConflict from failed


def webhook(entity: Webhook, workspace: str) -> None:
    """Moves a webhook to another workspace and encrypts its secret again for that workspace."""

    def sealed(stored: Webhook) -> str:
        return secret_values.seal(secret_values.open_secret(stored), workspace, stored.webhook_id)

    webhook_items.move(entity, workspace, sealed)


def alert(entity: Alert, workspace: str) -> None:
    """Moves an alert to another workspace and encrypts the addresses of its destinations again for
    that workspace. Does nothing if the alert was deleted meanwhile."""
    stored = alerts.find(entity.workspace, entity.alert_id)
    if stored is None:
        return
    destinations = tuple(
        destination_values.moved(destination, entity.workspace, workspace)
        for destination in stored.destinations
    )
    alerts.move(stored, workspace, destinations)


def _name_workspace(pk: str, workspace: str) -> None:
    """Writes the name of an experiment's new workspace to the items of its logged models.

    Args:
        pk: the partition key of the experiment.
    """
    for item in table.query_all(pk, prefix=keys.LOGGED_MODEL.sk.prefix()):
        if Item.of(item).type != keys.LOGGED_MODEL.name:
            continue
        if LoggedModel.of(item).workspace == workspace:
            continue
        change = Update()
        change.set(LoggedModel.workspace, workspace)
        change.set(LoggedModel.updated_at, now_ms())
        change.add(LoggedModel.version, 1)
        change.require_exists(LoggedModel.PK)
        with contextlib.suppress(ConditionFailed):  # it was removed meanwhile
            table.update(key_of_item(item), change)
