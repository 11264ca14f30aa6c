"""Transfers registered models and prompts with versions and aliases from an MLflow server to the
product's table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from mlcore import errors
from mlcore.db.attribute_types import TextAttribute
from mlcore.db.expression import Update
from mlcore.db.table import Put, table
from mlcore.entities.registry import ModelVersion, RegisteredModel
from mlcore.entities.workspaces import DEFAULT_WORKSPACE
from mlcore.ids import new_ulid
from mlcore.models.registry import ModelVersion as ModelVersionItem
from mlcore.models.registry import RegisteredModel as RegisteredModelItem
from mlcore.repos.registry import model_lifecycle, model_versions, registered_models
from mlcore.repos.registry import stages as model_stages
from mlcore.webhooks import announcement
from operate.transfer.experiments import change
from operate.transfer.mlflow_client import Json, Server, SourceFailed
from operate.transfer.source_reader import API, target_location, values_by_key
from operate.transfer.transfer_item import Content, TransferItem

_PROMPT: Final = "tags.`mlflow.prompt.is_prompt` = 'true'"
_LOGGED: Final = re.compile(r"models:/(m-[0-9a-f]{32})")
_SETTLED: Final = ("creation_timestamp", "last_updated_timestamp")
_TEXTS: Final[tuple[TextAttribute[Any], ...]] = (
    *(ModelVersionItem.description, ModelVersionItem.user_id),
    *(ModelVersionItem.source, ModelVersionItem.storage_location),
    *(ModelVersionItem.run_id, ModelVersionItem.run_link),
    *(ModelVersionItem.status, ModelVersionItem.status_message),
)


def names(server: Server) -> list[str]:
    """Returns the names of all registered models and prompts of an MLflow server. Recent servers
    list prompts only if a filter asks for them."""
    model_names: dict[str, None] = {}
    for condition in ({}, {"filter": _PROMPT}):
        try:
            for model in server.pages(
                "GET",
                f"{API}/registered-models/search",
                "registered_models",
                max_results=100,
                **condition,
            ):
                model_names[model["name"]] = None
        except SourceFailed as failed:
            if not condition or failed.status != 400:
                raise  # an old server has no prompts, and may not know such filters
    return list(model_names)


def item(server: Server, name: str) -> TransferItem:
    workspace = server.workspace

    def want() -> Content:
        fields = server.get(f"{API}/registered-models/get", name=name)["registered_model"]
        versions = {version.version: version for version in _versions(server, name)}
        return {
            **{field: int(fields[field]) for field in _SETTLED},
            "description": fields.get("description", ""),
            "tags": values_by_key(fields.get("tags")),
            "aliases": {
                entry["alias"]: int(entry["version"]) for entry in fields.get("aliases", ())
            },
            "versions": {number: _content(entry) for number, entry in sorted(versions.items())},
        }

    def have() -> Content | None:
        stored = registered_models.find(workspace, name)
        if stored is None:
            return None
        versions = model_versions.all_of(stored)
        return {
            **{field: getattr(stored.model, field) for field in _SETTLED},
            "description": stored.model.description,
            "tags": stored.model.tags,
            "aliases": stored.model.aliases,
            "versions": {
                version.version.version: _content(version.version) for version in versions
            },
        }

    def write(want: Content, existing: Content | None) -> None:
        if existing is None:
            _create(workspace, name, want)
        _complete(workspace, name, want)

    return TransferItem(
        "registered model", name, want, have, write, identity=identity(workspace, name)
    )


def identity(workspace: str, name: str) -> str:
    return name if workspace == DEFAULT_WORKSPACE else f"{workspace}/{name}"


def _versions(server: Server, name: str) -> Iterator[ModelVersion]:
    quote = '"' if "'" in name else "'"
    seen: set[int] = set()
    for condition in (f"name={quote}{name}{quote}", f"name={quote}{name}{quote} AND {_PROMPT}"):
        try:
            for fields in server.pages(
                "GET",
                f"{API}/model-versions/search",
                "model_versions",
                filter=condition,
                max_results=1000,
            ):
                if int(fields["version"]) not in seen:
                    seen.add(int(fields["version"]))
                    yield _version(server, fields)
        except SourceFailed as failed:
            if _PROMPT not in condition or failed.status != 400:
                raise


def _version(server: Server, fields: Json) -> ModelVersion:
    source = target_location(fields.get("source", ""), server.files)
    location = source
    if source.startswith("models:/"):
        location = target_location(
            server.get(
                f"{API}/model-versions/get-download-uri",
                name=fields["name"],
                version=fields["version"],
            ).get("artifact_uri", ""),
            server.files,
        )
    logged = _LOGGED.fullmatch(source)
    return ModelVersion(
        name=fields["name"],
        version=int(fields["version"]),
        creation_timestamp=int(fields["creation_timestamp"]),
        last_updated_timestamp=int(fields["last_updated_timestamp"]),
        description=fields.get("description"),
        user_id=fields.get("user_id"),
        current_stage=fields.get("current_stage", model_versions.NO_STAGE),
        source=source,
        storage_location=location,
        run_id=fields.get("run_id"),
        run_link=fields.get("run_link", ""),
        status=fields.get("status", model_versions.READY),
        status_message=fields.get("status_message"),
        tags=values_by_key(fields.get("tags")),
        model_id=logged.group(1) if logged else None,
    )


def _content(version: ModelVersion) -> Content:
    fields = version._asdict()
    del fields["name"], fields["version"]
    return {name: value for name, value in fields.items() if value is not None}


def _create(workspace: str, name: str, want: Content) -> None:
    model = RegisteredModel(
        name=name,
        workspace=workspace,
        creation_timestamp=want["creation_timestamp"],
        last_updated_timestamp=want["last_updated_timestamp"],
        description=want["description"],
        tags=want["tags"],
        aliases={},
        latest={},
    )
    model_lifecycle.create(model, announced=False)


def _complete(workspace: str, name: str, want: Content) -> None:
    """Writes the versions and fields in ``want`` that differ in the target table. Times are set
    last, because other writes change them."""
    stored = registered_models.get(workspace, name)
    present = {
        stored_version.version.version: stored_version
        for stored_version in model_versions.all_of(stored)
    }
    for version, content in want["versions"].items():
        if version not in present:
            _add(workspace, name, version, content)
        elif _content(present[version].version) != content:
            _change(workspace, name, version, content)
    stored = registered_models.get(workspace, name)
    tags = {key: text for key, text in want["tags"].items() if stored.model.tags.get(key) != text}
    if tags:
        registered_models.write(stored, {"tags": tags}, ())
    for alias, version in want["aliases"].items():
        if stored.model.aliases.get(alias) != version:
            registered_models.set_alias(stored, alias, version, [], announced=False)
    update = Update()
    update.set(RegisteredModelItem.description, want["description"])
    update.set(RegisteredModelItem.creation_time, want["creation_timestamp"])
    update.set(RegisteredModelItem.last_update_time, want["last_updated_timestamp"])
    change(stored.document.key, update)


def _add(workspace: str, name: str, version: int, content: Content) -> None:
    """Creates a model version with the server's version number, which may leave a gap. Raises
    ResourceConflict if the table has used that number or a higher one."""
    stored = registered_models.get(workspace, name)
    if version <= stored.last_version:
        raise errors.ResourceConflict(
            f"Model {name!r} has given the number {version} to another version, now deleted."
        )
    absent = dict.fromkeys(("description", "user_id", "run_id", "status_message"))
    made = ModelVersion(**{**absent, **content, "name": name, "version": version})
    operations = model_versions.creation(stored, made, new_ulid())
    for operation in operations:
        if isinstance(operation, Put):
            operation.item.pop(announcement.ATTRIBUTE, None)
    table.transact(operations, token=new_ulid())


def _change(workspace: str, name: str, version: int, content: Content) -> None:
    stored = model_versions.get(workspace, name, version)
    if stored.version.current_stage != content["current_stage"]:
        stored = model_stages.transition(stored, content["current_stage"], archive_existing=False)
    tags = {
        key: text for key, text in content["tags"].items() if stored.version.tags.get(key) != text
    }
    if tags:
        model_versions.write(stored, {"tags": tags}, ())
    update = Update()
    update.set(ModelVersionItem.creation_time, content["creation_timestamp"])
    update.set(ModelVersionItem.last_update_time, content["last_updated_timestamp"])
    for attribute in _TEXTS:
        if attribute.attr_name in content:
            update.set(attribute, content[attribute.attr_name])
    change(stored.document.key, update)
