"""Serves multipart uploads and presigned URLs, by which clients transfer files directly to and from
the artifact store."""

from __future__ import annotations

from typing import Any, Final

from artifacts import artifact_roots, file_responses
from artifacts import messages as m
from artifacts.proxy import UPLOAD_SECONDS, exact_key_of, key_of_file
from mlcore import errors
from mlcore.artifacts import UploadedPart, exact_path, join, locate, safe_path, store
from mlcore.artifacts.file_headers import content_type
from mlcore.artifacts.skill_uploads import check_not_skill
from mlcore.artifacts.storage_keys import PROXIED, scheme
from mlcore.http import Request
from mlcore.http.compression import MAX_BODY_BYTES
from mlcore.spans import trace_file_redaction

MAX_PARTS: Final = 10_000
MAX_URL_SECONDS: Final = 604_800
PRESIGNED_UPLOAD_SECONDS: Final = 900
_CREDENTIAL_OVERHEAD: Final = 60
"""More than the bytes of JSON that a response has around each URL."""


def create(message: m.CreateMultipartUpload, request: Request) -> dict[str, Any]:
    key = _key(message, request)
    trace_file_redaction.check_direct(key, request.workspace)
    # For an empty file clients ask for 0 parts; one empty part creates it.
    count = message.num_parts or 1
    if not 1 <= count <= MAX_PARTS:
        raise errors.InvalidParameterValue(
            f"num_parts must be between 1 and {MAX_PARTS} (got {count}). "
            "MLFLOW_MULTIPART_UPLOAD_CHUNK_SIZE at the client sets the size of a part."
        )
    upload_id = store().create_upload(key)

    def url(number: int) -> str:
        return store().part_url(
            key, upload_id, number, seconds=UPLOAD_SECONDS, origin=file_responses.origin(request)
        )

    max_parts = MAX_BODY_BYTES // (len(url(count)) + _CREDENTIAL_OVERHEAD)
    if count > max_parts:
        store().abort_upload(key, upload_id)
        raise errors.InvalidParameterValue(
            f"{count} parts are more than the {max_parts} whose URLs fit one response. "
            "Set MLFLOW_MULTIPART_UPLOAD_CHUNK_SIZE at the client to a larger size."
        )
    numbers = range(1, count + 1)
    credentials = [{"url": url(number), "part_number": number} for number in numbers]
    return {"upload_id": upload_id, "credentials": credentials}


def complete(message: m.CompleteMultipartUpload, request: Request) -> dict[str, Any]:
    parts = [UploadedPart(part.part_number, part.etag) for part in message.parts]
    numbers = [part.number for part in parts]
    if not parts or numbers != sorted(set(numbers)) or numbers[0] < 1:
        raise errors.InvalidParameterValue("The parts are not in the order of their numbers.")
    key = _key(message, request)
    trace_file_redaction.check_direct(key, request.workspace)
    store().complete_upload(key, message.upload_id, parts)
    return {}


def abort(message: m.AbortMultipartUpload, request: Request) -> dict[str, Any]:
    store().abort_upload(_key(message, request), message.upload_id)
    return {}


def get_presigned_download_url(
    message: m.GetPresignedDownloadUrl, request: Request
) -> dict[str, Any]:
    return file_responses.presigned(key_of_file(message.artifact_path, request), request)


def create_presigned_upload_url(
    message: m.CreatePresignedUploadUrl, request: Request
) -> dict[str, Any]:
    if bool(message.run_id) == bool(message.model_id):
        raise errors.InvalidParameterValue("Exactly one of run_id and model_id must be provided.")
    path = exact_path(message.path)
    seconds = _seconds(message, PRESIGNED_UPLOAD_SECONDS)
    root = (
        artifact_roots.root_of_run(message.run_id, request)
        if message.run_id
        else artifact_roots.root_of_logged_model(message.model_id, request)
    )
    if scheme(root) in PROXIED:
        raise errors.InvalidParameterValue(
            "Presigned upload is not supported for proxied artifact storage "
            f"(artifact URI scheme: {scheme(root)}). "
            "This endpoint requires a direct cloud storage artifact URI."
        )
    key = locate(root, request.workspace, path)
    check_not_skill(key)
    trace_file_redaction.check_direct(key, request.workspace)
    kind = content_type(path)
    url = store().upload_url(
        key, seconds=seconds, content_type=kind, origin=file_responses.origin(request)
    )
    return {"presigned_url": url, "headers": {"Content-Type": kind}}


def create_presigned_download_url(
    message: m.CreatePresignedDownloadUrl, request: Request
) -> dict[str, Any]:
    path = safe_path(message.path)
    seconds = _seconds(message, file_responses.download_seconds())
    root = artifact_roots.root_of_run(message.run_id, request)
    if scheme(root) in PROXIED:
        raise errors.InvalidParameterValue(
            "Presigned download is not supported for runs with proxied artifact storage "
            f"(artifact URI scheme: {scheme(root)}). "
            "This endpoint requires a run with a direct cloud storage artifact URI."
        )
    key = locate(root, request.workspace, path)
    size = file_responses.existing_file(key, 0).size
    return {
        "presigned_url": file_responses.download_url(key, seconds, request),
        "file_size": size,
    }


def _seconds(
    message: m.CreatePresignedUploadUrl | m.CreatePresignedDownloadUrl, default: int
) -> int:
    seconds = message.expiration if message.has("expiration") else default
    if not 1 <= seconds <= MAX_URL_SECONDS:
        raise errors.InvalidParameterValue(
            f"expiration must be between 1 and {MAX_URL_SECONDS} seconds (got {seconds})."
        )
    return seconds


def _key(
    message: m.CreateMultipartUpload | m.CompleteMultipartUpload | m.AbortMultipartUpload,
    request: Request,
) -> str:
    """Returns the store's key for the uploaded file. Clients send the file's path on their machine;
    only its last segment is used."""
    path = message.path
    if not path.startswith("/"):  # Windows
        path = path.replace("\\", "/")
    name = exact_path(path.rpartition("/")[2])
    if not name:
        raise errors.InvalidParameterValue("'path' names no file.")
    key = join(exact_key_of(message.artifact_path, request), name)
    check_not_skill(key)
    return key
