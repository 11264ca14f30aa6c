"""Uploads in parts and presigned URLs: what goes to the store past us."""

from __future__ import annotations

from typing import Any, Final

from artifacts import downloads, roots
from artifacts import messages as m
from artifacts.proxy import UPLOAD_SECONDS, exact_key_of, key_of
from mlcore import errors
from mlcore.artifacts import Part, below, exact_path, locate, safe_path, store
from mlcore.artifacts.content import content_type
from mlcore.artifacts.locations import PROXIED, scheme
from mlcore.http import Request
from mlcore.http.compression import MAX_BODY_BYTES

MOST_PARTS: Final = 10_000
LONGEST_SECONDS: Final = 604_800
PRESIGNED_UPLOAD_SECONDS: Final = 900
_OF_A_CREDENTIAL: Final = 60
"""Bytes of JSON around a URL."""


def create(message: m.CreateMultipartUpload, request: Request) -> dict[str, Any]:
    key = _key(message, request)
    # Clients find no part in an empty file; one that is empty makes it.
    count = message.num_parts or 1
    if not 1 <= count <= MOST_PARTS:
        raise errors.InvalidParameterValue(
            f"num_parts must be between 1 and {MOST_PARTS} (got {count}). "
            "MLFLOW_MULTIPART_UPLOAD_CHUNK_SIZE at the client sets the size of a part."
        )
    upload_id = store().create_upload(key)

    def url(number: int) -> str:
        return store().part_url(
            key, upload_id, number, seconds=UPLOAD_SECONDS, origin=downloads.origin(request)
        )

    most = MAX_BODY_BYTES // (len(url(count)) + _OF_A_CREDENTIAL)
    if count > most:
        store().abort_upload(key, upload_id)
        raise errors.InvalidParameterValue(
            f"{count} parts are more than the {most} that this server can describe in one answer. "
            "Set MLFLOW_MULTIPART_UPLOAD_CHUNK_SIZE at the client to a larger size."
        )
    numbers = range(1, count + 1)
    credentials = [{"url": url(number), "part_number": number} for number in numbers]
    return {"upload_id": upload_id, "credentials": credentials}


def complete(message: m.CompleteMultipartUpload, request: Request) -> dict[str, Any]:
    parts = [Part(part.part_number, part.etag) for part in message.parts]
    numbers = [part.number for part in parts]
    if not parts or numbers != sorted(set(numbers)) or numbers[0] < 1:
        raise errors.InvalidParameterValue("The parts are not in the order of their numbers.")
    store().complete_upload(_key(message, request), message.upload_id, parts)
    return {}


def abort(message: m.AbortMultipartUpload, request: Request) -> dict[str, Any]:
    store().abort_upload(_key(message, request), message.upload_id)
    return {}


def get_presigned_download_url(
    message: m.GetPresignedDownloadUrl, request: Request
) -> dict[str, Any]:
    key = key_of(message.artifact_path, request)
    size = downloads.existing_file(key, 0).size
    url = downloads.download_url(key, downloads.download_seconds(), request)
    return {"url": url, "headers": {}, "file_size": size}


def create_presigned_upload_url(
    message: m.CreatePresignedUploadUrl, request: Request
) -> dict[str, Any]:
    if bool(message.run_id) == bool(message.model_id):
        raise errors.InvalidParameterValue("Exactly one of run_id and model_id must be provided.")
    path = exact_path(message.path)
    seconds = _seconds(message, PRESIGNED_UPLOAD_SECONDS)
    root = (
        roots.of_run(message.run_id, request)
        if message.run_id
        else roots.of_logged_model(message.model_id, request)
    )
    if scheme(root) in PROXIED:
        raise errors.InvalidParameterValue(
            "Presigned upload is not supported for proxied artifact storage "
            f"(artifact URI scheme: {scheme(root)}). "
            "This endpoint requires a direct cloud storage artifact URI."
        )
    key = locate(root, request.workspace, path)
    kind = content_type(path)
    url = store().upload_url(
        key, seconds=seconds, content_type=kind, origin=downloads.origin(request)
    )
    return {"presigned_url": url, "headers": {"Content-Type": kind}}


def create_presigned_download_url(
    message: m.CreatePresignedDownloadUrl, request: Request
) -> dict[str, Any]:
    path = safe_path(message.path)
    seconds = _seconds(message, downloads.download_seconds())
    root = roots.of_run(message.run_id, request)
    if scheme(root) in PROXIED:
        raise errors.InvalidParameterValue(
            "Presigned download is not supported for runs with proxied artifact storage "
            f"(artifact URI scheme: {scheme(root)}). "
            "This endpoint requires a run with a direct cloud storage artifact URI."
        )
    key = locate(root, request.workspace, path)
    answer: dict[str, Any] = {
        "presigned_url": "",
        "file_size": downloads.existing_file(key, 0).size,
    }
    answer["presigned_url"] = downloads.download_url(key, seconds, request)
    return answer


def _seconds(
    message: m.CreatePresignedUploadUrl | m.CreatePresignedDownloadUrl, default: int
) -> int:
    seconds = message.expiration if message.has("expiration") else default
    if not 1 <= seconds <= LONGEST_SECONDS:
        raise errors.InvalidParameterValue(
            f"expiration must be between 1 and {LONGEST_SECONDS} seconds (got {seconds})."
        )
    return seconds


def _key(
    message: m.CreateMultipartUpload | m.CompleteMultipartUpload | m.AbortMultipartUpload,
    request: Request,
) -> str:
    """Clients send the path of the file on their machine; its name counts."""
    path = message.path
    if not path.startswith("/"):  # Windows
        path = path.replace("\\", "/")
    name = exact_path(path.rpartition("/")[2])
    if not name:
        raise errors.InvalidParameterValue("'path' names no file.")
    return below(exact_key_of(message.artifact_path, request), name)
