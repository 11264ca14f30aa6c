"""Returns health, version and capabilities of the server, without reading the table."""

from __future__ import annotations

import os
from typing import Any, Final

from mlcore import archival_configuration
from mlcore.environment import artifact_bucket, in_lambda, workspaces_enabled
from mlcore.http import Request, Response
from mlcore.limits import skills
from mlcore.mlflow_version import MLFLOW_VERSION
from server_info.messages import GetServerInfo

_SKILL_BYTES_IN_LAMBDA: Final = 4_000_000
"""Bytes of a skill's files that certainly fit one request to Lambda (6 MB with the archive in
Base64), even if gzip saves nothing."""


def health(_message: None, _request: Request) -> Response:
    return Response(200, "OK", "text/plain; charset=utf-8")


def version(_message: None, _request: Request) -> Response:
    return Response(200, MLFLOW_VERSION, "text/plain; charset=utf-8")


def get_server_info(_message: GetServerInfo, _request: Request) -> dict[str, Any]:
    """Returns the server's capabilities. Clients and the UI treat every store type but "SqlStore"
    as limited, and the UI counts a missing flag of ``features_enabled`` as true.

    With ``artifacts_presigned_only`` clients since 3.18 transfer every file directly with the
    bucket. Unlike MLflow's server, this one still serves the proxied routes, for older clients.
    Only the UI reads the limits of skills, before it packs a folder."""
    return {
        "store_type": "SqlStore",
        "workspaces_enabled": workspaces_enabled(),
        "trace_archival_enabled": archival_configuration.server() is not None,
        "multipart_uploads_enabled": True,
        "multipart_downloads_enabled": True,
        "artifact_serving_enabled": True,
        "artifacts_presigned_only": artifact_bucket() is not None,
        "skill_content_max_size": _max_skill_bytes(),
        "skill_content_max_files": skills.MAX_CONTENT_FILES,
        "presigned_upload_run_id_supported": True,
        "presigned_upload_model_id_supported": True,
        "model_artifact_presigned_downloads_supported": True,
        "features_enabled": {"gateway": True, "scheduled_issue_detection": True},
        "tracking_auth": os.environ.get("MLFLOW_SERVER_INFO_TRACKING_AUTH", ""),
    }


def _max_skill_bytes() -> int:
    most = skills.max_content_bytes()
    return min(most, _SKILL_BYTES_IN_LAMBDA) if in_lambda() else most
