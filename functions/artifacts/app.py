"""Routes of the Lambda function ``artifacts``: the artifact proxy, listings, direct transfers
(multipart uploads and presigned URLs), and the files that the UI shows."""

from __future__ import annotations

import os

from artifacts import direct_transfers, entity_artifacts, proxy
from artifacts import messages as m
from mlcore.artifacts import store
from mlcore.http import PlainRoute, delete, get, lambda_handler, of_query, post

_FILE = "/2.0/mlflow-artifacts/artifacts/{artifact_path+}"

RPCS = (
    get(
        "/mlflow-artifacts/artifacts",
        m.ListProxiedArtifacts,
        proxy.list_artifacts,
        "artifacts.read_proxied",
        hides="folders_of_runs",
        cost=0,
    ),
    delete(
        "/mlflow-artifacts/artifacts/{artifact_path+}",
        m.DeleteArtifact,
        proxy.delete_artifact,
        "artifacts.manage_proxied_tree",
        cost=0,
        deviation="An artifact path that URL decoding would change, such as `a%2Eb`, is refused.",
    ),
    post(
        "/mlflow-artifacts/mpu/create/{artifact_path+}",
        m.CreateMultipartUpload,
        direct_transfers.create,
        "artifacts.update_proxied",
        cost=0,
    ),
    post(
        "/mlflow-artifacts/mpu/complete/{artifact_path+}",
        m.CompleteMultipartUpload,
        direct_transfers.complete,
        "artifacts.update_proxied",
    ),
    post(
        "/mlflow-artifacts/mpu/abort/{artifact_path+}",
        m.AbortMultipartUpload,
        direct_transfers.abort,
        "artifacts.update_proxied",
        cost=0,
    ),
    get(
        "/mlflow-artifacts/presigned/{artifact_path+}",
        m.GetPresignedDownloadUrl,
        direct_transfers.get_presigned_download_url,
        "artifacts.read_proxied",
        since="3.11",
        cost=0,
    ),
    get(
        "/mlflow/artifacts/list",
        m.ListArtifacts,
        entity_artifacts.list_artifacts,
        "artifacts.read_files_of_run",
        cost=1,
    ),
    post(
        "/mlflow/artifacts/presigned-upload-url",
        m.CreatePresignedUploadUrl,
        direct_transfers.create_presigned_upload_url,
        "artifacts.upload_of_run_or_model",
        since="3.12",
    ),
    post(
        "/mlflow/artifacts/presigned-download-url",
        m.CreatePresignedDownloadUrl,
        direct_transfers.create_presigned_download_url,
        "artifacts.read_files_of_run",
        since="3.15",
        reads=True,
    ),
    get(
        "/mlflow/logged-models/{model_id}/artifacts/directories",
        m.ListLoggedModelArtifacts,
        entity_artifacts.list_logged_model_artifacts,
        "artifacts.directories_of_model",
        since="3.0",
        cost=1,
    ),
)
PLAIN_ROUTES = (
    *(
        PlainRoute(method, prefix + _FILE, parse, function, policy, cost=0)
        for prefix in ("/api", "/ajax-api")
        for method, parse, function, policy in (
            ("GET", m.parse_proxy_download, proxy.download, "artifacts.read_proxied"),
            ("PUT", m.parse_proxy_upload, proxy.upload, "artifacts.update_proxied"),
        )
    ),
    PlainRoute(
        "GET",
        "/get-artifact",
        of_query(m.GetArtifact),
        entity_artifacts.get_artifact,
        "artifacts.read_file_of_run",
        cost=1,
    ),
    PlainRoute(
        "GET",
        "/ajax-api/2.0/mlflow/get-artifact",
        of_query(m.GetArtifact),
        entity_artifacts.get_artifact,
        "artifacts.read_file_of_run",
        since="",
        cost=1,
    ),
    PlainRoute(
        "GET",
        "/model-versions/get-artifact",
        of_query(m.GetModelVersionArtifact),
        entity_artifacts.get_model_version_artifact,
        "artifacts.file_of_version",
        cost=1,
    ),
    PlainRoute(
        "GET",
        "/ajax-api/2.0/mlflow/logged-models/{model_id}/artifacts/files",
        of_query(m.GetLoggedModelArtifact),
        entity_artifacts.get_logged_model_artifact,
        "artifacts.file_of_model",
        since="3.0",
        cost=1,
    ),
    PlainRoute(
        "POST",
        "/ajax-api/2.0/mlflow/upload-artifact",
        m.parse_run_file_upload,
        entity_artifacts.upload_artifact,
        "artifacts.update_file_of_run",
        cost=1,
    ),
)

handler = lambda_handler(RPCS, PLAIN_ROUTES)

if "AWS_LAMBDA_RUNTIME_API" in os.environ:
    # Creates the S3 client during the function's start, not in its first request.
    store()
