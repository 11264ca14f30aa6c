"""Grants that models which were renamed or deleted have left on their former names."""

from __future__ import annotations

from collections.abc import Sequence

from mlcore.auth.permissions import ANY
from mlcore.db.expression import ConditionExpression
from mlcore.db.table import Check, key_of_item
from mlcore.models.registry import RegisteredModel
from mlcore.repos.registry import homes, registered_models
from mlcore.repos.users import grants
from mlcore.repos.users.grants import Since


def transfer_remaining(
    workspace: str,
    name: str,
    new_name: str,
    beside: Sequence[Check] = (),
    renamed_at: int | None = None,
) -> None:
    """Moves the remaining grants on a registered model or prompt to its new name. The name ``*``,
    which a model may have that was made without a login, stands for all models: grants on it stay.

    Args:
        beside: checks of each transaction; a grant stays if one fails.
        renamed_at: when the model was last renamed. Grants that were written since then are for a
            later model of the former name. None if that is now.
    """
    if ANY in (name, new_name):
        return
    for kind in grants.MODEL_TYPES:
        grants.transfer(workspace, kind, name, new_name, since(workspace, name, renamed_at), beside)


def follow_renames(removed: RegisteredModel, home: str) -> None:
    """Moves the grants that a rename has left on the model's former name, after the model's item
    under that name was removed. Does nothing if the model was deleted or is in another workspace.
    May be repeated.

    Args:
        removed: the removed item.
        home: the partition of the model's versions.
    """
    done = removed.name
    while True:
        owner = homes.owner_of(home)
        is_same = owner is not None and owner.incarnation == removed.incarnation
        item = homes.model_of(owner) if owner is not None and is_same else None
        model = None if item is None else RegisteredModel.of(item)
        if item is None or model is None or model.workspace != removed.workspace:
            return
        if model.name == done:
            return
        # If it is renamed again meanwhile, the grants stay and move in the next pass.
        same = ConditionExpression()
        same.require_equal(RegisteredModel.incarnation, removed.incarnation)
        check = Check(key_of_item(item), same)
        transfer_remaining(removed.workspace, removed.name, model.name, [check], model.renamed_at)
        done = model.name


def since(workspace: str, name: str, free_since: int | None = None) -> Since:
    """Returns a function that returns since when another model has the name; 0 if another model was
    renamed to it, because its grants were written before the rename; ``free_since`` if no model has
    the name."""

    def since_when() -> int | None:
        stored = registered_models.find(workspace, name)
        if stored is None:
            return free_since
        return 0 if stored.renamed_at else stored.model.creation_timestamp

    return since_when
