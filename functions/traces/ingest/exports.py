"""``POST /v1/traces``: OpenTelemetry's protocol over HTTP, with answers in the shape of MLflow's
server."""

from __future__ import annotations

import contextlib
import gzip
import json
import zlib
from typing import Final, NamedTuple

from mlcore.errors import MlflowError, ResourceDoesNotExist
from mlcore.http import Request, Response, Sent
from mlcore.limits.experiments import experiment_id
from mlcore.wire import encode
from traces import links
from traces.ingest import arrivals, otlp, otlp_json, otlp_protobuf
from traces.ingest.spans import Inconvertible

EXPERIMENT_HEADER: Final = "x-mlflow-experiment-id"
RUN_HEADER: Final = "x-mlflow-run-id"
MAX_BYTES: Final = 128 * 1024 * 1024
"""Of an export after it is unpacked."""

_READERS: Final = {
    "application/x-protobuf": otlp_protobuf.read,
    "application/json": otlp_json.read,
}


class _Refused(Exception):
    def __init__(self, status: int, detail: object) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


class Export(NamedTuple):
    """A parsed export."""

    experiment_id: str
    run_id: str
    """The run that traces are linked to whose root span comes; empty for none."""
    spans: dict[str, list[arrivals.Resourced]]
    """By the id of their trace."""
    refused: Response | None = None
    """The answer to an export that cannot be read, which has no spans."""

    @property
    def trace_ids(self) -> list[str]:
        return list(self.spans)


def parse(sent: Sent) -> Export:
    """The export in a request; one that cannot be read still says which experiment it is for."""
    experiment = sent.headers.get(EXPERIMENT_HEADER)
    run_id = sent.headers.get(RUN_HEADER, "")
    try:
        if experiment is None:
            place = ["header", EXPERIMENT_HEADER]
            missing = {"type": "missing", "loc": place, "msg": "Field required", "input": None}
            raise _Refused(422, [missing])
        return Export(experiment, run_id, arrivals.by_trace(_exported(sent)))
    except _Refused as refused:
        answer = _detail(refused.status, refused.detail)
    except Inconvertible:
        answer = _detail(422, "Cannot convert OpenTelemetry span to MLflow span")
    except MlflowError as error:
        answer = Response(error.status, encode(error.body()))
    return Export(experiment or "", run_id, {}, answer)


def export_spans(export: Export, request: Request) -> Response:
    """An empty answer of OpenTelemetry's, or FastAPI's ``{"detail": …}``."""
    if export.refused is not None:
        return export.refused
    try:
        if export.spans:
            experiment = experiment_id(export.experiment_id)
            arrivals.log_spans(experiment, export.spans, request.workspace)
            _link(export, request)
    except MlflowError as error:
        return Response(error.status, encode(error.body()))
    return Response(200, b"", "application/x-protobuf")


def _detail(status: int, detail: object) -> Response:
    """An error, byte for byte as FastAPI writes it."""
    text = json.dumps({"detail": detail}, separators=(",", ":"), ensure_ascii=False)
    return Response(status, text)


def _exported(sent: Sent) -> list[otlp.ResourceSpans]:
    kind = sent.headers.get("content-type")
    read = _READERS.get(kind.split(";")[0].strip()) if kind else None
    if read is None:
        raise _Refused(
            400,
            f"Invalid Content-Type: {kind}. Expected: application/x-protobuf or application/json",
        )
    body = sent.body()
    encoding = sent.headers.get("content-encoding")
    if encoding:
        body = _unpacked(body, encoding.lower())
    try:
        exported = read(body)
    except otlp.Malformed:
        raise _Refused(400, "Invalid OpenTelemetry format") from None
    if not exported:
        raise _Refused(400, "Invalid OpenTelemetry format - no spans found")
    return exported


def _unpacked(body: bytes, encoding: str) -> bytes:
    windows = {"gzip": (16 + zlib.MAX_WBITS,), "deflate": (zlib.MAX_WBITS, -zlib.MAX_WBITS)}
    if encoding not in windows:
        raise _Refused(400, f"Unsupported Content-Encoding: {encoding}")
    for bits in windows[encoding]:
        try:
            unpacker = zlib.decompressobj(bits)
            found = unpacker.decompress(body, MAX_BYTES)
        except zlib.error:
            continue
        if unpacker.unconsumed_tail:
            raise _Refused(413, f"The spans take more than {MAX_BYTES} bytes.")
        if unpacker.eof:
            return found + (gzip.decompress(unpacker.unused_data) if unpacker.unused_data else b"")
    raise _Refused(400, f"Failed to decompress {encoding} payload")


def _link(export: Export, request: Request) -> None:
    """Links traces whose root span came to the run that a header names; one that cannot be linked
    to does not refuse the spans, which are there by then."""
    ended = [
        trace_id
        for trace_id, together in export.spans.items()
        if any(span["parent_span_id"] is None for span, _ in together)
    ]
    if export.run_id and ended:
        with contextlib.suppress(ResourceDoesNotExist):
            links.link(export.run_id, ended, request.workspace)
