"""What an answer must not tell: references from what may be read to what is denied.

A run names its logged models, a model version its run, a trace its assessments. Only DENY on the
type hides such a reference, or for assessments the lack of a right to read them. What is hidden is
taken out of the answer's own dicts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from mlcore import errors
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
)
from mlcore.auth.requirements import NOT_DENIED, Requirement
from mlcore.policies.access import Access
from mlcore.policies.file_rights import RUN_FOLDERS
from mlcore.policies.gateway import (
    hide_in_endpoints,
    hide_in_mappings,
    hide_in_model_definitions,
    hide_passphrase,
)
from mlcore.policies.registry import kind_of_tags
from mlcore.policies.requests import inherited, on_mcp_versions
from mlcore.policies.reviews import hide_queues, hide_source_runs

Json = dict[str, Any]
Redaction = Callable[[Access, Any, Json], None]
"""Takes caller, message and response body."""

_METADATA: Final = {"mlflow.sourceRun": RUN, "mlflow.modelId": LOGGED_MODEL}
_OF_VERSION: Final = {RUN: ("run_id", "run_link"), LOGGED_MODEL: ("model_id",)}

_OF_ENDPOINT: Final = ("resolved_version", "tools", "server_version", "server_alias")
"""What of an access endpoint tells of the version that it leads to."""


def _is_denied(access: Access, resource_type: str) -> bool:
    return not access.allows(Requirement(resource_type, ANY, NOT_DENIED))


def hide_in_runs(access: Access, runs: Iterable[Json]) -> None:
    linked = [run for run in runs if run["inputs"] or run["outputs"]]
    if linked and _is_denied(access, LOGGED_MODEL):
        for run in linked:
            run["inputs"].pop("model_inputs", None)
            run["outputs"].pop("model_outputs", None)


def hide_in_versions(access: Access, versions: Iterable[Json]) -> None:
    for kind, names in _OF_VERSION.items():
        telling = [version for version in versions if any(map(version.get, names))]
        if telling and _is_denied(access, kind):
            for version in telling:
                for name in names:
                    version.pop(name, None)


def _hide_in_models(access: Access, models: Iterable[Json]) -> None:
    """Registered models, with the versions that they show."""
    for model in models:
        shown = model.get("latest_versions")
        if not shown:
            continue
        tags = {tag["key"]: tag.get("value", "") for tag in model.get("tags", ())}
        is_prompt = kind_of_tags(tags) == PROMPT
        container, kind = (
            (PROMPT, PROMPT_VERSION) if is_prompt else (REGISTERED_MODEL, REGISTERED_MODEL_VERSION)
        )
        readable = Requirement(container, model["name"], "read")
        if access.allows(readable, Requirement(kind, ANY, NOT_DENIED)):
            hide_in_versions(access, shown)
        else:
            del model["latest_versions"]


def _hide_in_logged_models(access: Access, models: Iterable[Json]) -> None:
    if _is_denied(access, RUN):
        for model in models:
            model["info"].pop("source_run_id", None)
            for metric in model["data"].get("metrics", ()):
                metric.pop("run_id", None)


def _hide_in_traces(access: Access, infos: Iterable[Json]) -> None:
    """Assessments, and the ids of denied things in the metadata of either version's shape."""
    readable: dict[str, bool] = {}
    for info in infos:
        if "assessments" in info:
            experiment_id = info["trace_location"]["mlflow_experiment"]["experiment_id"]
            if experiment_id not in readable:
                needed = inherited(experiment_id, ASSESSMENT, "read")
                readable[experiment_id] = access.allows(needed)
            if not readable[experiment_id]:
                del info["assessments"]
        for key, kind in _METADATA.items():
            _hide_key(access, info, key, kind)


def _hide_key(access: Access, info: Json, key: str, kind: str) -> None:
    told: dict[str, str] = info.get("trace_metadata", {})
    pairs: list[dict[str, str]] = info.get("request_metadata", [])
    if not (key in told or any(pair["key"] == key for pair in pairs)):
        return
    if not _is_denied(access, kind):
        return
    if told:
        info["trace_metadata"] = {name: text for name, text in told.items() if name != key}
    if pairs:
        info["request_metadata"] = [pair for pair in pairs if pair["key"] != key]
    for name in ("trace_metadata", "request_metadata"):
        if not info.get(name, True):
            del info[name]


def folders_of_runs(access: Access, message: Any, body: Json) -> None:
    """The folder of an experiment holds one of each run, whose name is the run's id."""
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


def _complete_mcp_servers(access: Access, servers: Iterable[Json]) -> None:
    """What the caller may do with servers is told; what their endpoints tell of versions may go."""
    for server in servers:
        level = access.grants().effective(MCP_SERVER, server["name"])
        allowed = {
            "USE": level.can_use,
            "UPDATE": level.can_update,
            "DELETE": level.can_delete,
            "MANAGE": level.can_manage,
        }
        server["allowed_actions"] = [action for action, may in allowed.items() if may]
        _hide_in_mcp_endpoints(access, server["access_endpoints"])


def _hide_in_mcp_endpoints(access: Access, endpoints: Iterable[Json]) -> None:
    denied: dict[str, bool] = {}
    for endpoint in endpoints:
        name = endpoint["server_name"]
        if name not in denied:
            denied[name] = not access.allows(*on_mcp_versions(name, NOT_DENIED))
        if denied[name]:
            endpoint.update(dict.fromkeys(name for name in _OF_ENDPOINT if name in endpoint))


def mcp_server(access: Access, message: Any, body: Json) -> None:
    """An answer that is an MCP server."""
    _complete_mcp_servers(access, [body])


def mcp_access_endpoint(access: Access, message: Any, body: Json) -> None:
    """An answer that is an access endpoint."""
    _hide_in_mcp_endpoints(access, [body])


def _each(name: str, hide: Callable[[Access, list[Json]], None], inside: str = "") -> Redaction:
    """Of the things under a name in the body: one, or a list of them.

    Args:
        inside: where in each thing the part is that tells something.
    """

    def redaction(access: Access, message: Any, body: Json) -> None:
        found = body.get(name)
        if found:
            things = found if isinstance(found, list) else [found]
            hide(access, [thing[inside] for thing in things] if inside else things)

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
