"""Files of runs, logged models and model versions, as the pages of the UI ask for them."""

from __future__ import annotations

from typing import Any, Final

from artifacts import downloads, roots
from artifacts import messages as m
from mlcore import errors
from mlcore.artifacts import exact_path, locate, safe_path, store
from mlcore.http import Request, Response
from mlcore.queries import artifacts as queries

MOST_UPLOADED_BYTES: Final = 10 * 1024 * 1024


def list_artifacts(message: m.ListArtifacts, request: Request) -> dict[str, Any]:
    return queries.of_run(message.run_id or message.run_uuid, message.path, request.workspace)


def list_logged_model_artifacts(
    message: m.ListLoggedModelArtifacts, request: Request
) -> dict[str, Any]:
    path = safe_path(message.artifact_directory_path)
    root = roots.of_logged_model(message.model_id, request)
    return queries.below(root, path, request.workspace)


def get_artifact(request: Request) -> Response:
    arguments = request.arguments()
    path = _path(arguments)
    run_id = arguments.get("run_id") or arguments.get("run_uuid")
    return _file(roots.of_run(str(run_id), request), path, request)


def get_model_version_artifact(request: Request) -> Response:
    arguments = request.arguments()
    path = _path(arguments)
    name, version = arguments.get("name", ""), arguments.get("version", "")
    return _file(roots.of_model_version(name, version, request), path, request)


def get_logged_model_artifact(request: Request) -> Response:
    path = request.arguments().get("artifact_file_path")
    if not path:
        raise errors.BadRequest('Request must include the "artifact_file_path" query parameter.')
    safe = safe_path(path)
    return _file(roots.of_logged_model(request.parameters["model_id"], request), safe, request)


def _file(root: str, path: str, request: Request) -> Response:
    return downloads.file(locate(root, request.workspace, path), request)


def _path(arguments: dict[str, str]) -> str:
    if "path" not in arguments:
        raise errors.InvalidParameterValue("Request must specify path.")
    return safe_path(arguments["path"])


def upload_artifact(request: Request) -> Response:
    arguments = request.arguments()
    run_id, path = arguments.get("run_uuid"), arguments.get("path")
    if not run_id:
        raise errors.InvalidParameterValue("Request must specify run_uuid.")
    if not path:
        raise errors.InvalidParameterValue("Request must specify path.")
    safe = exact_path(path)
    data = request.body()
    if not data:
        raise errors.InvalidParameterValue("Request must specify data.")
    if len(data) > MOST_UPLOADED_BYTES:
        raise errors.InvalidParameterValue("Artifact size is too large. Max size is 10MB.")
    if not safe or path.endswith("/"):
        raise errors.InvalidParameterValue(f"'{path}' names no file.")
    store().put(locate(roots.of_run(run_id, request), request.workspace, safe), data)
    return Response(200, "")
