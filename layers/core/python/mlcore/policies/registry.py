"""Who may do what with registered models, prompts and their versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mlcore.auth.permissions import ANY, LOGGED_MODEL, PROMPT, REGISTERED_MODEL, RUN
from mlcore.auth.requirements import NOT_DENIED, Requirement, Rung
from mlcore.errors import InvalidParameterValue
from mlcore.limits.model_sources import ModelUri, parse
from mlcore.models.logged_models import LoggedModel
from mlcore.policies import file_rights
from mlcore.policies.access import Access
from mlcore.policies.logged_models import on_models
from mlcore.policies.requests import Policy, inside, on_runs, subject, version_type
from mlcore.prompts import IS_PROMPT, is_prompt
from mlcore.repos.logged_models import logged_models
from mlcore.repos.registry import registered_models
from mlcore.repos.runs import runs
from mlcore.repos.users import grants

_RUNS: Final = "runs:/"


def kind_of(workspace: str, name: str) -> str | None:
    """Whether a name is a prompt's or a registered model's, by what is stored; None for neither."""
    found = registered_models.find(workspace, name) if name else None
    if found is None:
        return None
    return kind_of_tags(found.model.tags)


def kind_of_tags(tags: Mapping[str, str]) -> str:
    return PROMPT if is_prompt(tags) else REGISTERED_MODEL


def on_model(action: str) -> Policy:
    """The action on a model or prompt. A missing one counts as a model that nobody was granted."""

    def policy(access: Access, message: Any) -> bool:
        name = subject(message, "name")
        kind = kind_of(access.workspace, name) or REGISTERED_MODEL
        return access.allows(Requirement(kind, name, action))

    return policy


def on_version(action: str) -> Policy:
    """The action on a version, which inherits what holds for its model. A missing model is refused
    like one of somebody else."""

    def policy(access: Access, message: Any) -> bool:
        kind = kind_of(access.workspace, subject(message, "name"))
        return kind is not None and access.allows(
            Requirement(kind, message.name, "read"), _version(kind, message.name, action)
        )

    return policy


def read_version(access: Access, message: Any) -> bool:
    return may_read_version(access, subject(message, "name"))


def may_read_version(access: Access, name: str) -> bool:
    """Of a missing model nobody reads one."""
    kind = kind_of(access.workspace, name)
    return kind is not None and access.allows(
        Requirement(kind, name, "read"), Requirement(version_type(kind), ANY, NOT_DENIED)
    )


def create(access: Access, message: Any) -> bool:
    kind = kind_of_tags({tag.key: tag.value for tag in message.tags})
    return access.may_create() and access.allows(Requirement(kind, message.name or ANY, NOT_DENIED))


def delete(access: Access, message: Any) -> bool:
    """The model, and all of its versions."""
    kind = kind_of(access.workspace, subject(message, "name"))
    return kind is not None and access.allows(
        Requirement(kind, message.name, "delete"), _version(kind, message.name, "delete")
    )


def on_alias(action: str) -> Policy:
    """An alias is the model's, and names a version."""

    def policy(access: Access, message: Any) -> bool:
        kind = kind_of(access.workspace, subject(message, "name"))
        return kind is not None and access.allows(
            Requirement(kind, message.name, action), _version(kind, message.name, "read")
        )

    return policy


def create_version(access: Access, message: Any) -> bool:
    """The model must allow it, and what the version is made of must be readable."""
    kind = kind_of(access.workspace, subject(message, "name"))
    if kind is None or not access.allows(
        Requirement(kind, message.name, "update"), Requirement(version_type(kind), ANY, NOT_DENIED)
    ):
        return False
    tags = {tag.key: tag.value for tag in message.tags}
    asserted = kind_of_tags(tags) if IS_PROMPT in tags else kind
    if asserted != kind and not access.allows(Requirement(version_type(asserted), ANY, NOT_DENIED)):
        return False
    if not file_rights.may_read_source(access, message.source):
        return False
    source = _source(message.source)
    if source is not None and source.name:
        other = kind_of(access.workspace, source.name)
        return other is not None and access.allows(Requirement(other, source.name, "read"))
    if message.has("run_id") and not (message.run_id and on_runs(access, [message.run_id], "read")):
        return False
    models = [message.model_id] if message.has("model_id") else []
    if source is not None and source.model_id is not None:
        models.append(source.model_id)
    return all(models) and on_models(access, models, "read")


def may_name_source(access: Access, source: str) -> bool:
    """Whether a source may be named without a run or model that it is compared with: whoever reads
    the version reads the files behind its source. What is not there, and may come later, needs the
    right on a thing without a grant."""
    if not file_rights.may_name(access, source):
        return False
    if source.startswith(_RUNS):
        run_id = source.removeprefix(_RUNS).partition("/")[0]
        return access.allows(*inside(runs.locate(run_id) or "", RUN, "read"))
    named = _source(source)
    if named is None:
        return True
    if named.model_id is not None:
        (item,) = logged_models.find([named.model_id], access.workspace)
        experiment_id = "" if item is None else LoggedModel.of(item).experiment_id
        return access.allows(*inside(experiment_id, LOGGED_MODEL, "read"))
    kind = kind_of(access.workspace, named.name) or REGISTERED_MODEL
    return access.allows(Requirement(kind, named.name, "read"))


def search_versions(access: Access, message: Any) -> bool:
    """What is found by a run tells that the run made it, though no field does."""
    return "run_id" not in message.filter.lower() or access.allows(
        Requirement(RUN, ANY, NOT_DENIED)
    )


def _source(source: str) -> ModelUri | None:
    """What is copied, None for other sources and for what the registry will refuse."""
    try:
        return parse(source).model
    except InvalidParameterValue:
        return None


def _version(kind: str, name: str, action: str) -> Requirement:
    return Requirement(version_type(kind), ANY, action, (Rung(kind, name, action),))


def deleted(access: Access, message: Any, body: Mapping[str, Any]) -> None:
    """Grants that the transaction had no room for."""
    for kind in (REGISTERED_MODEL, PROMPT):
        grants.sweep(access.workspace, kind, message.name)


def renamed(access: Access, message: Any, body: Mapping[str, Any]) -> None:
    """As :func:`deleted`."""
    if message.new_name == message.name:
        return
    for kind in (REGISTERED_MODEL, PROMPT):
        grants.move(access.workspace, kind, message.name, message.new_name)


read_model = on_model("read")
update_model = on_model("update")
update_alias = on_alias("update")
delete_alias = on_alias("delete")
update_version = on_version("update")
delete_version = on_version("delete")
