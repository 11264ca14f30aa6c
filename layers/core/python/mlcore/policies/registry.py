"""Permission checks for requests about registered models, prompts and their versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mlcore import reserved_tags
from mlcore.auth.permissions import ANY, LOGGED_MODEL, PROMPT, REGISTERED_MODEL, RUN
from mlcore.auth.requirements import NOT_DENIED, InheritedFrom, Requirement
from mlcore.errors import InvalidParameterValue
from mlcore.limits.model_sources import ModelUri, parse
from mlcore.models.logged_models import LoggedModel
from mlcore.policies import location_rights
from mlcore.policies.access import Access
from mlcore.policies.logged_models import on_models
from mlcore.policies.shared_rules import Policy, inside, on_runs, subject, version_type
from mlcore.prompts import is_prompt
from mlcore.repos.logged_models import logged_models
from mlcore.repos.registry import registered_models
from mlcore.repos.runs.core import runs

_RUNS: Final = "runs:/"


def kind_of(workspace: str, name: str) -> str | None:
    """Returns the resource type (prompt or registered model) of the stored model with this name;
    None if there is none."""
    stored = registered_models.find(workspace, name) if name else None
    if stored is None:
        return None
    return kind_of_tags(stored.model.tags)


def kind_of_tags(tags: Mapping[str, str]) -> str:
    """Returns the resource type of a model with these tags: a tag marks prompts."""
    return PROMPT if is_prompt(tags) else REGISTERED_MODEL


def on_model(action: str) -> Policy:
    """Returns the policy that requires the action on a registered model or prompt. A missing name
    is treated as a model without a grant."""

    def policy(access: Access, message: Any) -> bool:
        name = subject(message, "name")
        kind = kind_of(access.workspace, name) or REGISTERED_MODEL
        return access.allows(Requirement(kind, name, action))

    return policy


def on_version(action: str) -> Policy:
    """Returns the policy that requires the action on a model version. Versions inherit the model's
    grants. A missing model is refused like one without a grant, so that names cannot be probed."""

    def policy(access: Access, message: Any) -> bool:
        kind = kind_of(access.workspace, subject(message, "name"))
        return kind is not None and access.allows(
            Requirement(kind, message.name, "read"),
            _version_requirement(kind, message.name, action),
        )

    return policy


def read_version(access: Access, message: Any) -> bool:
    return may_read_version(access, subject(message, "name"))


def may_read_version(access: Access, name: str) -> bool:
    """Whether the caller may read versions of a registered model. A missing model and an unreadable
    one get the same answer, so that names cannot be probed."""
    kind = kind_of(access.workspace, name)
    return kind is not None and access.allows(
        Requirement(kind, name, "read"), Requirement(version_type(kind), ANY, NOT_DENIED)
    )


def create(access: Access, message: Any) -> bool:
    kind = kind_of_tags({tag.key: tag.value for tag in message.tags})
    return access.may_create() and access.allows(Requirement(kind, message.name or ANY, NOT_DENIED))


def delete(access: Access, message: Any) -> bool:
    """Requires the right to delete the registered model or prompt and the right to delete its
    versions."""
    kind = kind_of(access.workspace, subject(message, "name"))
    return kind is not None and access.allows(
        Requirement(kind, message.name, "delete"),
        _version_requirement(kind, message.name, "delete"),
    )


def on_alias(action: str) -> Policy:
    """Returns the policy that requires the action on the registered model or prompt and the right
    to read its versions, since an alias names a version."""

    def policy(access: Access, message: Any) -> bool:
        kind = kind_of(access.workspace, subject(message, "name"))
        return kind is not None and access.allows(
            Requirement(kind, message.name, action),
            _version_requirement(kind, message.name, "read"),
        )

    return policy


def create_version(access: Access, message: Any) -> bool:
    """Allows creating a model version if the caller may update the model and read everything that
    the version is made from: files, run, logged model or other version."""
    kind = kind_of(access.workspace, subject(message, "name"))
    if kind is None or not access.allows(
        Requirement(kind, message.name, "update"), Requirement(version_type(kind), ANY, NOT_DENIED)
    ):
        return False
    tags = {tag.key: tag.value for tag in message.tags}
    asserted = kind_of_tags(tags) if reserved_tags.IS_PROMPT in tags else kind
    if asserted != kind and not access.allows(Requirement(version_type(asserted), ANY, NOT_DENIED)):
        return False
    if not location_rights.may_read_source(access, message.source):
        return False
    source = _copied_model(message.source)
    if source is not None and source.name:
        source_kind = kind_of(access.workspace, source.name)
        return source_kind is not None and access.allows(
            Requirement(source_kind, source.name, "read")
        )
    if message.has("run_id") and not (message.run_id and on_runs(access, [message.run_id], "read")):
        return False
    model_ids = [message.model_id] if message.has("model_id") else []
    if source is not None and source.model_id is not None:
        model_ids.append(source.model_id)
    return all(model_ids) and on_models(access, model_ids, "read")


def may_name_source(access: Access, source: str) -> bool:
    """Whether the caller may store a model version's source that is not compared with a run or
    model of the request. The caller must be allowed to read the source, because readers of the
    version will be able to read its files. For a source that names a missing run or model, the
    permission on resources without a grant decides."""
    if not location_rights.may_name(access, source):
        return False
    if source.startswith(_RUNS):
        run_id = source.removeprefix(_RUNS).partition("/")[0]
        # Nothing reads the run afterwards, so its cached experiment must not decide.
        experiment_ids = [experiment_id for experiment_id, _ in runs.owners([run_id])]
        return access.allows(*inside("".join(experiment_ids), RUN, "read"))
    model_uri = _copied_model(source)
    if model_uri is None:
        return True
    if model_uri.model_id is not None:
        (item,) = logged_models.find([model_uri.model_id], access.workspace)
        experiment_id = "" if item is None else LoggedModel.of(item).experiment_id
        return access.allows(*inside(experiment_id, LOGGED_MODEL, "read"))
    kind = kind_of(access.workspace, model_uri.name) or REGISTERED_MODEL
    return access.allows(Requirement(kind, model_uri.name, "read"))


def search_versions(access: Access, message: Any) -> bool:
    """Allows every search for model versions; the route's function removes those that the caller
    may not read. Refuses a filter by run to callers with the permission DENY on runs, because the
    result would reveal which versions a run made."""
    return "run_id" not in message.filter.lower() or access.allows(
        Requirement(RUN, ANY, NOT_DENIED)
    )


def _copied_model(source: str) -> ModelUri | None:
    """Returns the model that a ``models:/`` source copies; None for other sources and for those
    that the registry will refuse."""
    try:
        return parse(source).model
    except InvalidParameterValue:
        return None


def _version_requirement(kind: str, name: str, action: str) -> Requirement:
    return Requirement(version_type(kind), ANY, action, (InheritedFrom(kind, name, action),))


read_model = on_model("read")
update_model = on_model("update")
update_alias = on_alias("update")
delete_alias = on_alias("delete")
update_version = on_version("update")
delete_version = on_version("delete")
