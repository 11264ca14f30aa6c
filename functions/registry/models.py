"""Creates, reads, updates, renames and deletes registered models and prompts, and sets their tags
and aliases."""

from __future__ import annotations

from typing import Any

from mlcore import errors, ids
from mlcore.auth.permissions import PROMPT, REGISTERED_MODEL
from mlcore.db.failures import ConditionFailed
from mlcore.entities.registry import RegisteredModel
from mlcore.http import Request
from mlcore.limits import registry as limits
from mlcore.limits.shared_checks import check_key
from mlcore.optimistic_retry import WriteConflict, retry_on_conflict
from mlcore.prompts import is_prompt
from mlcore.repos.registry import homes as model_homes
from mlcore.repos.registry import (
    latest_versions,
    model_lifecycle,
    model_versions,
    registered_models,
)
from mlcore.repos.registry.model_lifecycle import ModelNameTaken
from mlcore.repos.registry.registered_models import StoredRegisteredModel
from mlcore.responses import registry as responses
from registry import messages as m
from registry import prompt_tags


def create_registered_model(message: m.CreateRegisteredModel, request: Request) -> dict[str, Any]:
    """Creates a registered model, or a prompt if the request has a prompt's tag, in one
    transaction."""
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
        model_lifecycle.create(model, also=request.granting(kind, model.name))
    except ModelNameTaken as taken:
        raise prompt_tags.name_taken(message.name, taken.holder.tags, tags) from taken
    return {"registered_model": responses.registered_model(model, [])}


def get_registered_model(message: m.GetRegisteredModel, request: Request) -> dict[str, Any]:
    return _answer(_get(message.name, request))


def update_registered_model(message: m.UpdateRegisteredModel, request: Request) -> dict[str, Any]:
    """Sets the description of a registered model. A request without one clears it."""
    registered_models.set_description(_get(message.name, request), message.description)
    return _answer(_get(message.name, request))


def rename_registered_model(message: m.RenameRegisteredModel, request: Request) -> dict[str, Any]:
    """Renames a registered model in one transaction, however many versions it has. The old name can
    be used again at once. If authentication is on, the rename is refused if roles have grants on
    the old or new name, or users on the new one, or if the new name is ``*``."""
    if request.access is not None:
        from mlcore.policies.model_renames import check_rename  # noqa: PLC0415 -- only with logins

        check_rename(request.access, message.name, message.new_name)
    limits.check_name(message.new_name, "new_name")

    def attempt() -> None:
        stored = _get(message.name, request)
        if message.new_name == message.name:
            registered_models.touch_name(stored)
            return
        try:
            moved_grants = request.moving_grants(message.name, message.new_name)
            model_lifecycle.rename(stored, message.new_name, moved_grants)
        except ModelNameTaken as taken:
            raise errors.ResourceAlreadyExists(
                f"Registered Model (name={message.new_name}) already exists."
            ) from taken
        except ConditionFailed as failed:
            raise WriteConflict from failed

    retry_on_conflict("model", attempt)
    return _answer(_get(message.new_name, request))


def delete_registered_model(message: m.DeleteRegisteredModel, request: Request) -> dict[str, Any]:
    """Deletes a model: first its main item, so that readers no longer find the model, then its
    other items. If the model does not exist, deletes what an interrupted deletion left of it, and
    raises ResourceDoesNotExist."""

    def attempt() -> tuple[StoredRegisteredModel, bool]:
        stored = _get(message.name, request)
        try:
            executed = model_lifecycle.delete(stored, request.moving_grants(message.name, None))
        except ConditionFailed as failed:
            raise WriteConflict from failed
        return stored, executed

    try:
        stored, executed = retry_on_conflict("model", attempt)
    except errors.ResourceDoesNotExist:
        model_homes.clear_remains(request.workspace, message.name)
        raise
    model_homes.clear(stored.home, stored.incarnation, executed=executed)
    return {}


def set_registered_model_tag(message: m.SetRegisteredModelTag, request: Request) -> dict[str, Any]:
    limits.check_name(message.name)
    tag = limits.check_model_tag(message.key, message.value)
    registered_models.set_tag(_get(message.name, request), tag.key, tag.value)
    return {}


def delete_registered_model_tag(
    message: m.DeleteRegisteredModelTag, request: Request
) -> dict[str, Any]:
    """Deletes a tag of a registered model. Deleting a missing tag succeeds."""
    limits.check_name(message.name)
    check_key(message.key, "key")
    stored = _get(message.name, request)
    if message.key in stored.model.tags:
        registered_models.delete_tag(stored, message.key)
    return {}


def set_registered_model_alias(
    message: m.SetRegisteredModelAlias, request: Request
) -> dict[str, Any]:
    """Sets an alias of a model version, in one transaction that fails if the version is deleted
    meanwhile."""
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
    """Deletes an alias of a registered model. Deleting a missing alias succeeds."""
    limits.check_name(message.name)
    limits.check_alias(message.alias)
    stored = _get(message.name, request)
    if message.alias in stored.model.aliases:
        registered_models.delete_alias(stored, message.alias)
    return {}


def _get(name: str, request: Request) -> StoredRegisteredModel:
    limits.check_name(name)
    return registered_models.get(request.workspace, name)


def _answer(stored: StoredRegisteredModel) -> dict[str, Any]:
    """Returns the JSON of a model with its latest versions, which are read first."""
    latest = latest_versions.of_one(stored)
    return {"registered_model": responses.registered_model(stored.model, latest)}
