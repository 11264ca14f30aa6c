"""Request messages of the artifact RPCs, with fields in the order of MLflow's service.proto and
mlflow_artifacts.proto (``artifact_path`` comes from the URL's path), and requests of the plain
routes that download or upload files."""

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
    presigned: str


class GetLoggedModelArtifact(Message):
    model_id: str
    artifact_file_path: str
    presigned: str


class ProxyDownload(NamedTuple):
    """A request to download a file through MLflow's artifact proxy (``mlflow-artifacts``)."""

    artifact_path: str


class ProxyUpload(NamedTuple):
    """An upload through the artifact proxy."""

    artifact_path: str
    data: bytes | None
    """The file's content; None if API Gateway may have changed or dropped the body."""


class RunFileUpload(NamedTuple):
    """An upload to a run, by the UI."""

    run_id: str
    """The run to write to; an empty one is refused."""
    path: str
    data: bytes


def parse_proxy_download(sent: Sent) -> ProxyDownload:
    return ProxyDownload(sent.parameters["artifact_path"])


def parse_proxy_upload(sent: Sent) -> ProxyUpload:
    data = None if sent.body_is_incomplete() else sent.body()
    return ProxyUpload(sent.parameters["artifact_path"], data)


def parse_run_file_upload(sent: Sent) -> RunFileUpload:
    """Parses the UI's upload of a run's file. MLflow before 3.18 called ``run_id`` ``run_uuid``."""
    arguments = sent.arguments()
    run_id = arguments.get("run_id") or arguments.get("run_uuid", "")
    return RunFileUpload(run_id, arguments.get("path", ""), sent.body())
