"""Answers health, version and capabilities, without reading the table."""

from __future__ import annotations

import os
from typing import Any

from mlcore.environment import workspaces_enabled
from mlcore.http import Request, Response
from mlcore.limits import skills
from mlcore.mlflow_version import MLFLOW_VERSION
from server_info.messages import GetServerInfo


def health(_message: None, _request: Request) -> Response:
    return Response(200, "OK", "text/plain; charset=utf-8")


def version(_message: None, _request: Request) -> Response:
    return Response(200, MLFLOW_VERSION, "text/plain; charset=utf-8")


def get_server_info(_message: GetServerInfo, _request: Request) -> dict[str, Any]:
    """Returns the server's capabilities. ``store_type`` is "SqlStore", because clients and the UI
    treat every other type as limited; every flag of ``features_enabled`` is present, because the UI
    takes a missing one for true."""
    return {
        "store_type": "SqlStore",
        "workspaces_enabled": workspaces_enabled(),
        "trace_archival_enabled": False,
        "multipart_uploads_enabled": True,
        "multipart_downloads_enabled": True,
        "artifact_serving_enabled": True,
        "artifacts_presigned_only": False,
        "skill_content_max_size": skills.max_content_bytes(),
        "skill_content_max_files": skills.MAX_CONTENT_FILES,
        "presigned_upload_run_id_supported": True,
        "presigned_upload_model_id_supported": True,
        "model_artifact_presigned_downloads_supported": True,
        "features_enabled": {"gateway": True, "scheduled_issue_detection": False},
        "tracking_auth": os.environ.get("MLFLOW_SERVER_INFO_TRACKING_AUTH", ""),
    }
