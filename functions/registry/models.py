"""The rules of registered models: names, tags, aliases and life, as MLflow's server has them."""

from __future__ import annotations

from typing import Any

from mlcore import errors, ids
from mlcore.auth.permissions import PROMPT, REGISTERED_MODEL
from mlcore.db.failures import ConditionFailed
from mlcore.entities.registry import RegisteredModel
from mlcore.http import Request
from mlcore.limits import registry as limits
from mlcore.limits.text import check_key
from mlcore.prompts import is_prompt
from mlcore.repos.registry import homes as model_homes
from mlcore.repos.registry import latest_versions, model_versions, registered_models
from mlcore.repos.registry import names as model_names
from mlcore.repos.registry.names import NameTaken
from mlcore.repos.registry.registered_models import StoredRegisteredModel
from mlcore.responses import registry as responses
from mlcore.settle import Conflict, settle
from registry import messages as m
from registry import prompts


def create_registered_model(message: m.CreateRegisteredModel, request: Request) -> dict[str, Any]:
    """One transaction."""
    limits.check_name(message.name)
    tags = limits.check_model_tags(message.tags)
    now = ids.now_ms()
    kind = PROMPT if is_prompt(tags) else REGISTERED_MODEL
    model = RegisteredModel(
        name=message.name,
        workspace=request.workspace,
        creation_timestamp=now,
        last_updated_timestamp=now,
        description=message.description,
        tags=tags,
        aliases={},
        latest={},
    )
    try:
        model_names.create(model, also=request.granting(kind, model.name))
    except NameTaken as taken:
        raise prompts.name_taken(message.name, taken.holder.tags, tags) from taken
    return {"registered_model": responses.registered_model(model, [])}


def get_registered_model(message: m.GetRegisteredModel, request: Request) -> dict[str, Any]:
    return _whole(_get(message.name, request))


def update_registered_model(message: m.UpdateRegisteredModel, request: Request) -> dict[str, Any]:
    """Without a description it is cleared."""
    registered_models.set_description(_get(message.name, request), message.description)
    return _whole(_get(message.name, request))


def rename_registered_model(message: m.RenameRegisteredModel, request: Request) -> dict[str, Any]:
    """One transaction, however many versions there are. The old name is free at once."""
    limits.check_name(message.new_name, "new_name")

    def attempt() -> None:
        stored = _get(message.name, request)
        if message.new_name == message.name:
            registered_models.touch_name(stored)
            return
        try:
            moved = request.moving_grants(message.name, message.new_name)
            model_names.rename(stored, message.new_name, moved)
        except NameTaken as taken:
            raise errors.ResourceAlreadyExists(
                f"Registered Model (name={message.new_name}) already exists."
            ) from taken
        except ConditionFailed as failed:
            raise Conflict from failed

    settle("model", attempt)
    return _whole(_get(message.new_name, request))


def delete_registered_model(message: m.DeleteRegisteredModel, request: Request) -> dict[str, Any]:
    """The model is gone with its item; what else there was of it is cleared then."""

    def attempt() -> StoredRegisteredModel:
        stored = _get(message.name, request)
        try:
            model_names.delete(stored, request.moving_grants(message.name, None))
        except ConditionFailed as failed:
            raise Conflict from failed
        return stored

    stored = settle("model", attempt)
    model_homes.clear(stored.home, stored.incarnation)
    return {}


def set_registered_model_tag(message: m.SetRegisteredModelTag, request: Request) -> dict[str, Any]:
    limits.check_name(message.name)
    tag = limits.check_model_tag(message.key, message.value)
    registered_models.set_tag(_get(message.name, request), tag.key, tag.value)
    return {}


def delete_registered_model_tag(
    message: m.DeleteRegisteredModelTag, request: Request
) -> dict[str, Any]:
    """A tag that is not there is deleted already."""
    limits.check_name(message.name)
    check_key(message.key, "key")
    stored = _get(message.name, request)
    if message.key in stored.model.tags:
        registered_models.delete_tag(stored, message.key)
    return {}


def set_registered_model_alias(
    message: m.SetRegisteredModelAlias, request: Request
) -> dict[str, Any]:
    """One transaction that holds only while the version is not deleted."""
    limits.check_name(message.name)
    limits.check_new_alias(message.alias)
    number = limits.version_number(message.version)
    model_versions.set_alias(
        model_versions.get(request.workspace, message.name, number), message.alias
    )
    return {}


def delete_registered_model_alias(
    message: m.DeleteRegisteredModelAlias, request: Request
) -> dict[str, Any]:
    """An alias that is not there is deleted already."""
    limits.check_name(message.name)
    limits.check_alias(message.alias)
    stored = _get(message.name, request)
    if message.alias in stored.model.aliases:
        registered_models.delete_alias(stored, message.alias)
    return {}


def _get(name: str, request: Request) -> StoredRegisteredModel:
    limits.check_name(name)
    return registered_models.get(request.workspace, name)


def _whole(stored: StoredRegisteredModel) -> dict[str, Any]:
    latest = latest_versions.of_one(stored)
    return {"registered_model": responses.registered_model(stored.model, latest)}
