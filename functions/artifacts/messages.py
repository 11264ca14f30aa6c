"""Requests of the artifact RPCs, in the field order of MLflow's service.proto and
mlflow_artifacts.proto; ``artifact_path`` comes from the path of the request. Then those of routes
that are no RPCs."""

from __future__ import annotations

from typing import NamedTuple

from mlcore.http import Sent
from mlcore.wire import Message, intlike, required, string


class ListArtifacts(Message):
    run_id: str
    run_uuid: str
    path: str
    page_token: str
    checks = {"run_id": (string, required), "path": (string,), "page_token": (string,)}


class ListLoggedModelArtifacts(Message):
    model_id: str
    artifact_directory_path: str
    page_token: str
    checks = {"artifact_directory_path": (string,)}


class CreatePresignedUploadUrl(Message):
    run_id: str
    path: str
    expiration: int
    model_id: str
    checks = {
        "run_id": (string,),
        "model_id": (string,),
        "path": (required, string),
        "expiration": (intlike,),
    }


class CreatePresignedDownloadUrl(Message):
    run_id: str
    path: str
    expiration: int
    checks = {
        "run_id": (required, string),
        "path": (required, string),
        "expiration": (intlike,),
    }


class ListProxiedArtifacts(Message):
    path: str


class DeleteArtifact(Message):
    artifact_path: str


class GetPresignedDownloadUrl(Message):
    artifact_path: str


class CreateMultipartUpload(Message):
    path: str
    num_parts: int
    artifact_path: str
    checks = {"path": (required, string), "num_parts": (intlike,)}


class MultipartUploadPart(Message):
    part_number: int
    etag: str
    url: str


class CompleteMultipartUpload(Message):
    path: str
    upload_id: str
    parts: list[MultipartUploadPart]
    artifact_path: str
    checks = {"path": (required, string), "upload_id": (string,), "parts": (required,)}


class AbortMultipartUpload(Message):
    path: str
    upload_id: str
    artifact_path: str
    checks = {"path": (required, string), "upload_id": (string,)}


class GetArtifact(Message):
    run_id: str
    run_uuid: str
    path: str


class GetModelVersionArtifact(Message):
    name: str
    version: str
    path: str


class GetLoggedModelArtifact(Message):
    model_id: str
    artifact_file_path: str


class ProxiedFile(NamedTuple):
    """A file of the proxy."""

    artifact_path: str


class SentFile(NamedTuple):
    """A file for the proxy."""

    artifact_path: str
    data: bytes | None
    """None when the body is not what the client sent."""


class SentFileOfRun(NamedTuple):
    """A file for a run."""

    run_id: str
    """The run that is written to; empty if none is named by ``run_uuid``, which is refused."""
    other_run_id: str
    """The parameter ``run_id``, which names no run to write to."""
    path: str
    data: bytes


def proxied_file(sent: Sent) -> ProxiedFile:
    return ProxiedFile(sent.parameters["artifact_path"])


def sent_file(sent: Sent) -> SentFile:
    data = None if sent.body_is_incomplete() else sent.body()
    return SentFile(sent.parameters["artifact_path"], data)


def sent_file_of_run(sent: Sent) -> SentFileOfRun:
    """The UI names the run by ``run_uuid`` alone."""
    given = sent.arguments()
    run_id, other, path = (given.get(name, "") for name in ("run_uuid", "run_id", "path"))
    return SentFileOfRun(run_id, other, path, sent.body())
