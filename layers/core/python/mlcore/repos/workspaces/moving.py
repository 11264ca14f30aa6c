"""Moves experiments, registered models and webhooks from one workspace to another, each in one
transaction; asks nobody whether it should."""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.expression import Condition, Raw, Update, number, string
from mlcore.db.keys import Key
from mlcore.db.table import Change, Delete, Put, TransactionFailed, table
from mlcore.ids import new_ulid, now_ms
from mlcore.models.experiments import ExperimentNameLock
from mlcore.repos import webhooks as webhook_items
from mlcore.repos.files import locations
from mlcore.repos.registry import names as model_names
from mlcore.repos.registry import registered_models
from mlcore.settle import Conflict
from mlcore.webhooks import sealing
from mlcore.webhooks.webhook import Webhook


class NameTaken(Exception):
    """The other workspace has something of that name."""


def experiment(experiment_id: str, workspace: str) -> None:
    """The experiment, with all that is in it, under its name. Raises NameTaken."""
    place = keys.experiment(experiment_id)
    item = table.get(place)
    if item is None or item["workspace"]["S"] == workspace:
        return
    name, old = item["name"]["S"], item["workspace"]["S"]
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
    attributes = {"gsi2pk": gsi2pk, "gsi2sk": gsi2sk, "gsi5pk": gsi5pk, "gsi5sk": gsi5sk}
    change = Update()
    for attribute, value in {**attributes, "workspace": workspace}.items():
        change.set(attribute, string(value))
    change.set("updated_at", number(now_ms()))
    change.add("version", 1)
    change.require_equal("workspace", string(old))
    change.require_equal("name", string(name))
    absent = Condition()
    absent.require_absent("PK")
    try:
        table.transact(
            [
                Put(dict(lock.serialize()), absent),
                Delete(keys.experiment_name_lock(old, name)),
                Change(place, change),
                *locations.of_moved(experiment_id, item["artifact_location"]["S"], old),
            ],
            new_ulid(),
        )
    except TransactionFailed as failed:
        held = failed.items.get(0)
        if held is not None and held["experiment_id"]["S"] != experiment_id:
            raise NameTaken(name) from failed
        raise Conflict(experiment_id) from failed
    for model in table.query_all(place.pk, prefix=keys.LOGGED_MODEL.sk.prefix()):
        if model["type"]["S"] == keys.LOGGED_MODEL.name:
            _name_workspace(Key(model["PK"]["S"], model["SK"]["S"]), workspace)


def registered_model(place: Key, workspace: str) -> None:
    """The model; its versions stay where they are. Raises NameTaken."""
    item = table.get(place)
    if item is None:
        return
    read = registered_models.record(item)
    target = keys.registered_model(workspace, read.model.name)
    moved: Raw = {**item, **model_names.names(workspace, read.model.name)}
    moved["PK"], moved["SK"] = string(target.pk), string(target.sk)
    moved["workspace"] = string(workspace)
    moved["updated_at"] = number(now_ms())
    moved["version"] = number(int(item["version"]["N"]) + 1)
    moved["home"] = string(read.home)
    absent, unchanged, mine = Condition(), Condition(), Update()
    absent.require_absent("PK")
    unchanged.require_equal("version", item["version"])
    mine.set("model_pk", string(target.pk))
    mine.require_equal("incarnation", item["incarnation"])
    try:
        table.transact(
            [
                Put(moved, absent),
                Delete(place, unchanged),
                Change(keys.model_home(read.home), mine),
            ],
            new_ulid(),
        )
    except TransactionFailed as failed:
        if failed.items.get(0) is not None:
            raise NameTaken(read.model.name) from failed
        raise Conflict(read.model.name) from failed


def webhook(found: Webhook, workspace: str) -> None:
    """The webhook, its secret sealed for the place that it comes to."""
    secret = sealing.sealed(sealing.opened(found), workspace, found.webhook_id)
    webhook_items.put(found._replace(workspace=workspace, sealed_secret=secret))
    webhook_items.delete(found)


def _name_workspace(place: Key, workspace: str) -> None:
    change = Update()
    change.set("workspace", string(workspace))
    change.set("updated_at", number(now_ms()))
    change.add("version", 1)
    change.require_exists("PK")
    table.update(place, change)
