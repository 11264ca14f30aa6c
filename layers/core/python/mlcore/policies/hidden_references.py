"""Removes from answers the references of readable resources to denied ones, and adds
``allowed_actions``.

A run names its logged models, a model version its run, a trace its assessments. Usually only DENY
hides such a reference; assessments, a model's latest versions and folders of runs are also hidden
without the right to read them. Functions change the dicts of the answer (``body``) in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from mlcore import errors, reserved_tags
from mlcore.artifacts import safe_path
from mlcore.auth.permissions import (
    ANY,
    ASSESSMENT,
    LOGGED_MODEL,
    MCP_SERVER,
    PROMPT,
    PROMPT_VERSION,
    REGISTERED_MODEL,
    REGISTERED_MODEL_VERSION,
    RUN,
    SKILL,
)
from mlcore.auth.requirements import NOT_DENIED, Requirement
from mlcore.entities.skills import SkillIdentity
from mlcore.policies.access import Access
from mlcore.policies.gateway import (
    hide_in_endpoints,
    hide_in_mappings,
    hide_in_model_definitions,
    hide_passphrase,
)
from mlcore.policies.location_rights import RUN_FOLDERS
from mlcore.policies.registry import kind_of_tags
from mlcore.policies.reviews_and_issues import hide_queues, hide_source_runs
from mlcore.policies.shared_rules import inherited, on_mcp_versions
from mlcore.wire.encoding import Encoded

Json = dict[str, Any]
Redaction = Callable[[Access, Any, Json], None]
"""A function of caller, message and response body; changes the body."""

_TRACE_METADATA_TYPES: Final = {reserved_tags.SOURCE_RUN: RUN, reserved_tags.MODEL_ID: LOGGED_MODEL}
_VERSION_REFERENCE_FIELDS: Final = {RUN: ("run_id", "run_link"), LOGGED_MODEL: ("model_id",)}

_ACTIONS: Final = {
    "USE": "can_use",
    "UPDATE": "can_update",
    "DELETE": "can_delete",
    "MANAGE": "can_manage",
}
"""By entry of ``allowed_actions``, the attribute of a permission level that allows the action."""

_ENDPOINT_VERSION_FIELDS: Final = ("resolved_version", "tools", "server_version", "server_alias")
"""Fields of an access endpoint that reveal its version."""


def _is_denied(access: Access, resource_type: str) -> bool:
    return not access.allows(Requirement(resource_type, ANY, NOT_DENIED))


def hide_in_runs(access: Access, runs: Iterable[Json | Encoded]) -> None:
    """Removes logged models from the inputs and outputs of runs if the caller is denied all logged
    models. A run that is JSON text already (:class:`Encoded`) has neither inputs nor outputs
    (:class:`mlcore.repos.runs.search.run_pages.Shown`)."""
    linked = [
        run for run in runs if not isinstance(run, Encoded) and (run["inputs"] or run["outputs"])
    ]
    if linked and _is_denied(access, LOGGED_MODEL):
        for run in linked:
            run["inputs"].pop("model_inputs", None)
            run["outputs"].pop("model_outputs", None)


def hide_in_versions(access: Access, versions: Iterable[Json]) -> None:
    """Removes the reference to a run or logged model from the JSON of model versions, if the caller
    is denied that type of resource."""
    for resource_type, fields in _VERSION_REFERENCE_FIELDS.items():
        versions_with_reference = [version for version in versions if any(map(version.get, fields))]
        if versions_with_reference and _is_denied(access, resource_type):
            for version in versions_with_reference:
                for field in fields:
                    version.pop(field, None)


def _hide_in_models(access: Access, models: Iterable[Json]) -> None:
    """Removes denied versions from registered models and prompts, and denied references from the
    remaining versions."""
    for model in models:
        latest_versions = model.get("latest_versions")
        if not latest_versions:
            continue
        tags = {tag["key"]: tag.get("value", "") for tag in model.get("tags", ())}
        is_prompt = kind_of_tags(tags) == PROMPT
        container, version_type = (
            (PROMPT, PROMPT_VERSION) if is_prompt else (REGISTERED_MODEL, REGISTERED_MODEL_VERSION)
        )
        readable = Requirement(container, model["name"], "read")
        if access.allows(readable, Requirement(version_type, ANY, NOT_DENIED)):
            hide_in_versions(access, latest_versions)
        else:
            del model["latest_versions"]


def _hide_in_logged_models(access: Access, models: Iterable[Json]) -> None:
    if _is_denied(access, RUN):
        for model in models:
            model["info"].pop("source_run_id", None)
            for metric in model["data"].get("metrics", ()):
                metric.pop("run_id", None)


def _hide_in_traces(access: Access, infos: Iterable[Json]) -> None:
    """Removes assessments that the caller may not read, and ids of denied resources in metadata,
    from traces in the JSON of either API version."""
    readable: dict[str, bool] = {}
    for info in infos:
        if "assessments" in info:
            experiment_id = info["trace_location"]["mlflow_experiment"]["experiment_id"]
            if experiment_id not in readable:
                requirement = inherited(experiment_id, ASSESSMENT, "read")
                readable[experiment_id] = access.allows(requirement)
            if not readable[experiment_id]:
                del info["assessments"]
        for key, resource_type in _TRACE_METADATA_TYPES.items():
            _hide_key(access, info, key, resource_type)


def _hide_key(access: Access, info: Json, key: str, resource_type: str) -> None:
    """Removes one metadata key from a trace if the resource type is denied; an emptied metadata
    field is removed too."""
    metadata: dict[str, str] = info.get("trace_metadata", {})
    pairs: list[dict[str, str]] = info.get("request_metadata", [])
    if not (key in metadata or any(pair["key"] == key for pair in pairs)):
        return
    if not _is_denied(access, resource_type):
        return
    if metadata:
        info["trace_metadata"] = {name: text for name, text in metadata.items() if name != key}
    if pairs:
        info["request_metadata"] = [pair for pair in pairs if pair["key"] != key]
    for name in ("trace_metadata", "request_metadata"):
        if not info.get(name, True):
            del info[name]


def folders_of_runs(access: Access, message: Any, body: Json) -> None:
    """Hides run folders in the listing of an experiment's folder from callers who may not read the
    experiment's runs, since the names of the folders are run ids."""
    try:
        segments = [part for part in safe_path(message.path).split("/") if part]
    except errors.MlflowError:
        return
    if segments[:1] == ["workspaces"]:
        segments = segments[2:]
    if len(segments) == 1 and not access.allows(inherited(segments[0], RUN, "read")):
        files = [file for file in body.get("files", ()) if not RUN_FOLDERS.fullmatch(file["path"])]
        body.pop("files", None)
        if files:
            body["files"] = files


def _allowed_actions(access: Access, resource_type: str, resource_id: str) -> list[str]:
    level = access.grants().effective(resource_type, resource_id)
    return [action for action, capability in _ACTIONS.items() if getattr(level, capability)]


def _complete_skills(access: Access, skills: Iterable[Json]) -> None:
    """Adds to each skill ``allowed_actions``: what the caller may do with it."""
    for skill in skills:
        identity = SkillIdentity(skill["organization"], skill["name"])
        skill["allowed_actions"] = _allowed_actions(access, SKILL, identity.resource_id)


def skill(access: Access, message: Any, body: Json) -> None:
    """Adds ``allowed_actions`` (what the caller may do with the skill) to an answer that is one
    skill."""
    _complete_skills(access, [body])


def created_skill(access: Access, message: Any, body: Json) -> None:
    """Adds all actions as ``allowed_actions`` to the answer to the creator of a skill. (The
    creator's grant is newer than the grants that the request has read.)"""
    body["allowed_actions"] = list(_ACTIONS)


def _complete_mcp_servers(access: Access, servers: Iterable[Json]) -> None:
    """Adds to each server ``allowed_actions``: what the caller may do with it. Sets the version
    fields of its endpoints to null if versions are denied."""
    for server in servers:
        server["allowed_actions"] = _allowed_actions(access, MCP_SERVER, server["name"])
        _hide_in_mcp_endpoints(access, server["access_endpoints"])


def _hide_in_mcp_endpoints(access: Access, endpoints: Iterable[Json]) -> None:
    """Sets the version fields of access endpoints to null if versions of their server are
    denied."""
    denied: dict[str, bool] = {}
    for endpoint in endpoints:
        name = endpoint["server_name"]
        if name not in denied:
            denied[name] = not access.allows(*on_mcp_versions(name, NOT_DENIED))
        if denied[name]:
            endpoint.update(
                dict.fromkeys(name for name in _ENDPOINT_VERSION_FIELDS if name in endpoint)
            )


def mcp_server(access: Access, message: Any, body: Json) -> None:
    """Adds ``allowed_actions`` (what the caller may do with the server) to an answer that is one
    MCP server. If versions of the server are denied, sets the version fields of its access
    endpoints to null."""
    _complete_mcp_servers(access, [body])


def mcp_access_endpoint(access: Access, message: Any, body: Json) -> None:
    """Sets the version fields in the JSON of one MCP access endpoint to null if the caller is
    denied the versions of its MCP server."""
    _hide_in_mcp_endpoints(access, [body])


def _each(field: str, redact: Callable[[Access, list[Json]], None], inside: str = "") -> Redaction:
    """Returns a redaction that applies ``redact`` to the object, or to each object of the list, in
    a field of the body.

    Args:
        inside: field of each object that holds the part to be redacted; empty for the whole object.
    """

    def redaction(access: Access, message: Any, body: Json) -> None:
        value = body.get(field)
        if value:
            objects = value if isinstance(value, list) else [value]
            redact(access, [item[inside] for item in objects] if inside else objects)

    return redaction


run = _each("run", hide_in_runs)
runs = _each("runs", hide_in_runs)
version = _each("model_version", hide_in_versions)
versions = _each("model_versions", hide_in_versions)
registered_model = _each("registered_model", _hide_in_models)
registered_models = _each("registered_models", _hide_in_models)
logged_model = _each("model", _hide_in_logged_models)
logged_models = _each("models", _hide_in_logged_models)
trace_info_v2 = _each("trace_info", _hide_in_traces)
found_traces = _each("traces", _hide_in_traces)
trace = _each("trace", _hide_in_traces, "trace_info")
traces = _each("traces", _hide_in_traces, "trace_info")
trace_infos = _each("trace_infos", _hide_in_traces)
skills = _each("skills", _complete_skills)
mcp_servers = _each("mcp_servers", _complete_mcp_servers)
mcp_access_endpoints = _each("mcp_access_endpoints", _hide_in_mcp_endpoints)
gateway_model_definition = _each("model_definition", hide_in_model_definitions)
gateway_model_definitions = _each("model_definitions", hide_in_model_definitions)
gateway_mapping = _each("mapping", hide_in_mappings)
gateway_endpoint = _each("endpoint", hide_in_endpoints)
gateway_endpoints = _each("endpoints", hide_in_endpoints)
gateway_passphrase = hide_passphrase
queues = hide_queues
source_runs = hide_source_runs
