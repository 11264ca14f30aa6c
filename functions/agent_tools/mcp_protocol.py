"""Serves the Model Context Protocol over streamable HTTP: one JSON response for each request, no
sessions, no streams. Source: https://modelcontextprotocol.io/specification/2025-11-25."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any, Final

from agent_tools import tools
from agent_tools.json_rpc import NotJsonRpc, RpcRequest
from mlcore import errors
from mlcore.http import Request, Response
from mlcore.http.api_client import ApiClient
from mlcore.mlflow_version import MLFLOW_VERSION

Json = dict[str, Any]

VERSIONS: Final = ("2025-11-25", "2025-06-18")
"""The supported versions of the protocol, newest first. The one before them has batches."""
MAX_RESULT_BYTES: Final = 1_000_000
"""The most bytes of a tool's result. Lambda's limit is 6 MB, a model's context much less."""

METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
UNSUPPORTED_VERSION: Final = -32022

_INSTRUCTIONS: Final = (
    "Reads the experiments, runs, metrics, traces, models and prompts of an MLflow tracking server "
    "with the rights of the user. Search experiments first: runs and traces are searched by "
    "experiment id. Answers that have next_page_token continue with page_token."
)


def answer(message: RpcRequest | NotJsonRpc, request: Request) -> Response:
    """Returns the answer to ``POST /mcp``. A notification gets 202 without a body. If a tool fails,
    for example because of a missing permission, the answer is a result with ``isError``, so that
    the model reads the reason; an unknown tool gets an error of the protocol."""
    if isinstance(message, NotJsonRpc):
        return _error(None, message.code, message.message, 400)
    if message.id is None:
        return Response(202, "")
    if message.method == "initialize":
        return _result(message, _initialize(message.params))
    if message.version and message.version not in VERSIONS:
        supported = {"supported": list(VERSIONS), "requested": message.version}
        text = "Unsupported protocol version"
        return _error(message.id, UNSUPPORTED_VERSION, text, 400, supported)
    if message.method == "ping":
        return _result(message, {})
    if message.method == "tools/list":
        return _result(message, {"tools": [tool.declaration() for tool in tools.TOOLS.values()]})
    if message.method == "tools/call":
        return _call(message, request)
    return _error(message.id, METHOD_NOT_FOUND, f"Method not found: {message.method[:100]}")


def _initialize(params: Json) -> Json:
    wanted = params.get("protocolVersion")
    return {
        "protocolVersion": wanted if wanted in VERSIONS else VERSIONS[0],
        "capabilities": {"tools": {"listChanged": False}},
        "serverInfo": {"name": "mlflow-serverless", "version": MLFLOW_VERSION},
        "instructions": _INSTRUCTIONS,
    }


def _call(message: RpcRequest, request: Request) -> Response:
    name, arguments = message.params.get("name"), message.params.get("arguments")
    tool = tools.TOOLS.get(name) if isinstance(name, str) else None
    if tool is None:
        return _error(message.id, INVALID_PARAMS, f"Unknown tool: {str(name)[:100]}")
    try:
        checked = tool.checked({} if arguments is None else arguments)
        with closing(ApiClient(request)) as client:
            text = json.dumps(tool.call(client, checked), ensure_ascii=False)
    except errors.MlflowError as error:
        return _tool_result(message, f"{error.error_code}: {error.message[:10_000]}", failed=True)
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_RESULT_BYTES:
        return _tool_result(
            message,
            f"The result has {size} bytes, more than {MAX_RESULT_BYTES}. Ask for less: a smaller "
            "max_results, a narrower filter, or fewer columns.",
            failed=True,
        )
    return _tool_result(message, text, failed=False)


def _tool_result(message: RpcRequest, text: str, *, failed: bool) -> Response:
    return _result(message, {"content": [{"type": "text", "text": text}], "isError": failed})


def _result(message: RpcRequest, result: Json) -> Response:
    return Response(200, json.dumps({"jsonrpc": "2.0", "id": message.id, "result": result}))


def _error(
    request_id: str | int | None, code: int, text: str, status: int = 200, data: Json | None = None
) -> Response:
    error: Json = {"code": code, "message": text, **({"data": data} if data else {})}
    return Response(status, json.dumps({"jsonrpc": "2.0", "id": request_id, "error": error}))
