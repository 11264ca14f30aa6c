"""What callers of the gateway get: JSON, server-sent events, and errors in the form of MLflow's
gateway, which is not that of its API."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from mlcore import errors
from mlcore.http import Request
from mlcore.http.handler import Manner
from mlcore.http.response import Response
from mlcore.http.routes import Route, allowed_methods
from mlcore.observability import logger

Json = dict[str, Any]

EVENTS: Final = "text/event-stream; charset=utf-8"


def whole(answer: Json) -> Response:
    return Response(200, _written(answer))


def streamed(chunks: Iterator[Json]) -> Response:
    """Chunks as server-sent events."""
    return passed(f"data: {_written(chunk)}\n\n".encode() for chunk in chunks)


def passed(parts: Iterator[bytes]) -> Response:
    """A provider's own events. Whatever fails once the answer has begun is told as its last
    event."""
    return Response(200, _safe(parts), EVENTS)


def _safe(parts: Iterator[bytes]) -> Iterator[bytes]:
    try:
        yield from parts
    except errors.AllModelsFailed as error:
        yield _failed("AIGatewayException", error.message)
    except errors.GuardrailViolation as error:
        yield _failed("GuardrailViolation", error.message)
    except errors.GatewayCallFailed as error:
        yield _failed("HTTPException", f"{error.status}: {error.message}")
    except errors.MlflowError as error:
        yield _failed("MlflowException", error.message)
    except Exception:
        logger.exception("unexpected error in a stream")
        yield _failed("MlflowException", "The request failed unexpectedly.")


def _failed(kind: str, message: str) -> bytes:
    return f"data: {json.dumps({'error': {'message': message, 'type': kind}})}\n\n".encode()


def _failure(error: errors.MlflowError, _path: str) -> Response:
    if isinstance(error, errors.GatewayCallFailed):
        detail: Any = error.detail
    elif isinstance(error, errors.EndpointNotFound):
        return Response(error.status, _written(error.body()))
    else:
        detail = {"error_code": error.error_code, "message": error.message}
    return Response(error.status, _written({"detail": detail}))


def _no_route(request: Request, methods: Mapping[str, Route]) -> Response:
    allow = {"allow": allowed_methods(methods)}
    if request.method == "OPTIONS":
        return Response(200, "", "text/html; charset=utf-8", allow)
    return Response(405, _written({"detail": "Method Not Allowed"}), headers=allow)


def _written(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


MANNER: Final = Manner(_failure, _no_route, lambda response: response)
