"""What the server says about itself, without touching the table."""

from __future__ import annotations

from typing import Any

from mlcore.environment import workspaces_enabled
from mlcore.http import Request, Response
from mlcore.mlflow_version import MLFLOW_VERSION
from server_info.messages import GetServerInfo


def health(_message: None, _request: Request) -> Response:
    return Response(200, "OK", "text/plain; charset=utf-8")


def version(_message: None, _request: Request) -> Response:
    return Response(200, MLFLOW_VERSION, "text/plain; charset=utf-8")


def get_server_info(_message: GetServerInfo, _request: Request) -> dict[str, Any]:
    """Capabilities. "SqlStore" is the only store type that clients and the UI do not treat as
    limited."""
    return {
        "store_type": "SqlStore",
        "workspaces_enabled": workspaces_enabled(),
        "trace_archival_enabled": False,
        "multipart_uploads_enabled": True,
        "multipart_downloads_enabled": True,
        "presigned_upload_run_id_supported": True,
        "presigned_upload_model_id_supported": True,
        "features_enabled": {"gateway": True},
    }
