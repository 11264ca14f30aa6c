"""Serves ``POST /v1/traces``: OpenTelemetry's protocol over HTTP, with the same answers as MLflow's
server."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import zlib
from typing import Final, NamedTuple

from mlcore.errors import MlflowError, ResourceDoesNotExist
from mlcore.http import Request, Response, Sent, failure
from mlcore.limits.experiments import experiment_id
from traces import links
from traces.ingest import otlp, otlp_json, otlp_protobuf, span_writes
from traces.ingest.span_conversion import Inconvertible

EXPERIMENT_HEADER: Final = "x-mlflow-experiment-id"
RUN_HEADER: Final = "x-mlflow-run-id"
MAX_BYTES: Final = 128 * 1024 * 1024
"""The largest decompressed export."""

JSON: Final = "application/json"
_READERS: Final = {
    "application/x-protobuf": otlp_protobuf.read,
    JSON: otlp_json.read,
}


class _Refused(Exception):
    """Raised if the export cannot be parsed. ``detail`` is the member ``detail`` of the error
    answer, which has FastAPI's form."""

    def __init__(self, status: int, detail: object) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


class Export(NamedTuple):
    """An OTLP export request, parsed."""

    experiment_id: str
    run_id: str
    """The run to which a trace is linked when its root span arrives; empty for none."""
    spans: dict[str, list[span_writes.SpanOfResource]]
    """Spans by the id of their trace."""
    refused: Response | None = None
    """The error answer if the export cannot be read; it has no spans then."""
    in_json: bool = False
    """Whether the request is JSON; otherwise it is protobuf."""

    @property
    def trace_ids(self) -> list[str]:
        return list(self.spans)


def parse(sent: Sent) -> Export:
    """Parses a request that exports spans (OpenTelemetry). If its spans cannot be parsed, the
    result still has the experiment's id (empty without the header), because the policy decides
    about the experiment before an error is answered."""
    experiment = sent.headers.get(EXPERIMENT_HEADER)
    run_id = sent.headers.get(RUN_HEADER, "")
    try:
        if experiment is None:
            location = ["header", EXPERIMENT_HEADER]
            missing = {"type": "missing", "loc": location, "msg": "Field required", "input": None}
            raise _Refused(422, [missing])
        spans = span_writes.convert_by_trace(_read_spans(sent))
        return Export(experiment, run_id, spans, in_json=_media_type(sent) == JSON)
    except _Refused as refused:
        answer = _detail(refused.status, refused.detail)
    except Inconvertible:
        answer = _detail(422, "Cannot convert OpenTelemetry span to MLflow span")
    except MlflowError as error:
        answer = failure(error)
    return Export(experiment or "", run_id, {}, answer)


def export_spans(export: Export, request: Request) -> Response:
    """Stores the spans of an OTLP export, and links traces whose root span is among them to the run
    that a header names. Returns an empty message in the encoding of the request, or an error: the
    one of :func:`parse` (``export.refused``) if the export cannot be read, otherwise an error in
    MLflow's form, with ``error_code``."""
    if export.refused is not None:
        return export.refused
    try:
        if export.spans:
            experiment = experiment_id(export.experiment_id)
            span_writes.log_spans(experiment, export.spans, request.workspace)
            _link(export, request)
    except MlflowError as error:
        return failure(error)
    if export.in_json:
        return Response(200, "{}")
    return Response(200, b"", "application/x-protobuf")


def _detail(status: int, detail: object) -> Response:
    """Returns an error answer, byte for byte as FastAPI writes it."""
    text = json.dumps({"detail": detail}, separators=(",", ":"), ensure_ascii=False)
    return Response(status, text)


def _read_spans(sent: Sent) -> list[otlp.ResourceSpans]:
    """Decompresses and decodes the body of an OTLP export. Raises _Refused (400) if the content
    type is unsupported, or the body is malformed or without spans."""
    read = _READERS.get(_media_type(sent))
    if read is None:
        raise _Refused(
            400,
            f"Invalid Content-Type: {sent.headers.get('content-type')}. "
            "Expected: application/x-protobuf or application/json",
        )
    body = sent.body()
    encoding = sent.headers.get("content-encoding")
    if encoding:
        body = _decompressed(body, encoding.lower())
    try:
        exported = read(body)
    except otlp.InvalidExport:
        raise _Refused(400, "Invalid OpenTelemetry format") from None
    if not exported:
        raise _Refused(400, "Invalid OpenTelemetry format - no spans found")
    return exported


def _media_type(sent: Sent) -> str:
    """Returns the content type without parameters such as the charset."""
    return sent.headers.get("content-type", "").split(";")[0].strip()


def _decompressed(body: bytes, encoding: str) -> bytes:
    """Decompresses the body of an export. A body in gzip may have several members. Raises _Refused
    if the encoding is unknown or wrong (400), or if the content is too large (413)."""
    try:
        if encoding == "gzip":
            with gzip.GzipFile(fileobj=io.BytesIO(body)) as members:
                content = members.read(MAX_BYTES + 1)
        elif encoding == "deflate":
            content = _inflated(body)
        else:
            raise _Refused(400, f"Unsupported Content-Encoding: {encoding}")
    except (OSError, EOFError, zlib.error):
        raise _Refused(400, f"Failed to decompress {encoding} payload") from None
    if len(content) > MAX_BYTES:
        raise _Refused(413, f"The spans take more than {MAX_BYTES} bytes.")
    return content


def _inflated(body: bytes) -> bytes:
    """Returns at most MAX_BYTES + 1 bytes of a body that zlib compressed, with or without its
    header. Raises zlib.error, or EOFError if the body is cut off."""
    decompressor = zlib.decompressobj()
    try:
        content = decompressor.decompress(body, MAX_BYTES + 1)
    except zlib.error:
        decompressor = zlib.decompressobj(-zlib.MAX_WBITS)
        content = decompressor.decompress(body, MAX_BYTES + 1)
    if len(content) <= MAX_BYTES and not decompressor.eof:
        raise EOFError
    return content


def _link(export: Export, request: Request) -> None:
    """Links the traces whose root span is in the export to the run that a header names. A missing
    run is ignored, because the spans are already stored."""
    with_root = [
        trace_id
        for trace_id, spans in export.spans.items()
        if any(span["parent_span_id"] is None for span, _ in spans)
    ]
    if export.run_id and with_root:
        with contextlib.suppress(ResourceDoesNotExist):
            links.link(export.run_id, with_root, request.workspace)
