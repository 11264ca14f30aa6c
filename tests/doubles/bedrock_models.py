"""Models at Amazon Bedrock that are called by InvokeModel and InvokeModelWithResponseStream, as
AWS's user guide has their requests and answers, and CountTokens."""

from __future__ import annotations

import base64
import json
import re
from typing import Any
from urllib.parse import unquote

from tests.doubles import detailed_anthropic
from tests.doubles.bedrock import converse, frame, stream
from tests.doubles.providers import Asked, Json, Told

BETAS = frozenset(("interleaved-thinking-2025-05-14", "context-1m-2025-08-07", "new-2026-11-01"))
"""The only ones that the double accepts."""
VERSIONS = ("bedrock-2023-05-31", "2026-10-21")
"""Those that models accept, the second one only newer models."""
_PATH = re.compile(r"/model/([^/]+)/(.+)")
_TITAN_DIMENSIONS = (256, 512, 1024)
_COHERE_DIMENSIONS = (256, 512, 1024, 1536)


def answer(request: Asked) -> Told:
    """Any of these operations, by the model in the path. boto3 names no type of a model's body."""
    request = request._replace(body=json.loads(request.raw or b"{}"))
    path = _PATH.fullmatch(request.path)
    if path is None:
        return refusal(404, "UnknownOperationException", "Unknown operation")
    model, operation = unquote(path[1]), path[2]
    if operation in ("converse", "converse-stream"):
        return converse(request)
    if operation == "count-tokens":
        return _count(model, request.body)
    if operation not in ("invoke", "invoke-with-response-stream"):
        return refusal(404, "UnknownOperationException", "Unknown operation")
    streams = operation != "invoke"
    if "anthropic." in model:
        return claude(request.body, streams=streams)
    if streams:
        return refusal(400, "ValidationException", "The model is unsupported for streaming")
    return _titan(model, request.body) if "titan" in model else _cohere(model, request.body)


def refusal(status: int, kind: str, message: str) -> Told:
    told = f"{kind}:http://internal.amazon.com/coral/com.amazon.bedrock/"
    return Told(status, {"message": message}, headers={"x-amzn-ErrorType": told})


def claude(body: Json, *, streams: bool) -> Told:
    """A model of Anthropic's, which answers as :mod:`tests.doubles.detailed_anthropic` does."""
    wrong = _wrong_message(body)
    if wrong:
        return refusal(400, "ValidationException", wrong)
    more = {"model": "claude-opus-4-8", "stream": streams}
    told = detailed_anthropic.answer(Asked("/v1/messages", {}, {**body, **more}))
    if told.status != 200:
        kinds = {429: "ThrottlingException", 403: "AccessDeniedException"}
        kind = kinds.get(told.status, "ValidationException")
        refused = refusal(told.status, kind, told.body["error"]["message"])
        return refused._replace(headers={**refused.headers, **told.headers})
    if not streams:
        used = {**told.body["usage"], "service_tier": "standard"}
        return counted({**told.body, "usage": used}, used["input_tokens"], used["output_tokens"])
    sent = "".join(str(part) for part in told.parts)
    inner = [json.loads(line[6:]) for line in sent.splitlines() if line.startswith("data: ")]
    metrics = {
        **{"inputTokenCount": 2095, "outputTokenCount": 503, "invocationLatency": 9},
        **{"cacheReadInputTokenCount": 30, "cacheWriteInputTokenCount": 20},
    }
    inner[-1]["amazon-bedrock-invocationMetrics"] = metrics
    told = stream(*map(chunk, inner))
    return told._replace(headers={"X-Amzn-Bedrock-Content-Type": "application/json"})


def chunk(event: Any) -> bytes:
    """One event of InvokeModelWithResponseStream, with padding as AWS sends it."""
    encoded = base64.b64encode(json.dumps(event, ensure_ascii=False).encode()).decode()
    return frame("chunk", {"bytes": encoded, "p": "abcdefghijk"})


def counted(body: Any, tokens: int, answered: int = 0) -> Told:
    """An answer of InvokeModel, whose headers count the tokens."""
    return Told(
        body=body,
        headers={
            "X-Amzn-Bedrock-Input-Token-Count": str(tokens),
            "X-Amzn-Bedrock-Output-Token-Count": str(answered),
            "X-Amzn-Bedrock-Invocation-Latency": "9",
        },
    )


def _wrong_message(body: Json) -> str:
    if body.get("anthropic_version") not in VERSIONS:
        return "anthropic_version: Field required"
    if "max_tokens" not in body:
        return "max_tokens: Field required"
    for name in ("model", "stream"):
        if name in body:
            return f"{name}: Extra inputs are not permitted"
    if not BETAS.issuperset(body.get("anthropic_beta", ())):
        return "The model returned the following errors: invalid beta flag"
    return ""


def _count(model: str, body: Json) -> Told:
    if not model.startswith("anthropic."):
        message = "The provided model doesn't support counting tokens."
        return refusal(400, "ValidationException", message)
    if "converse" in body["input"]:
        return Told(body={"inputTokens": len(body["input"]["converse"]["messages"])})
    invoked = json.loads(base64.b64decode(body["input"]["invokeModel"]["body"]))
    wrong = _wrong_message(invoked)
    if wrong:
        return refusal(400, "ValidationException", wrong)
    return Told(body={"inputTokens": 2095})


def _titan(model: str, body: Json) -> Told:
    is_first = "v2" not in model
    allowed = {"inputText"} if is_first else {"inputText", "dimensions", "normalize"}
    if body.keys() - allowed:
        return refusal(400, "ValidationException", "Malformed input request: extraneous key")
    size = body.get("dimensions", 1536 if is_first else 1024)
    if not is_first and size not in _TITAN_DIMENSIONS:
        return refusal(400, "ValidationException", "dimensions is not a valid enum value")
    text = body["inputText"]
    if text == "too long":
        return refusal(400, "ValidationException", "Too many input tokens")
    tokens = len(text.split())
    return counted({"embedding": vector(text, size), "inputTextTokenCount": tokens}, tokens)


def _cohere(model: str, body: Json) -> Told:
    texts = body["texts"]
    if "input_type" not in body or not 0 < len(texts) <= 96:
        return refusal(400, "ValidationException", "Malformed input request")
    allowed = {"texts", "input_type", "truncate"}
    if "v4" in model:
        allowed |= {"output_dimension", "embedding_types"}
    if body.keys() - allowed:
        return refusal(400, "ValidationException", "Malformed input request: extraneous key")
    size = body.get("output_dimension", 1536 if "v4" in model else 1024)
    if size not in _COHERE_DIMENSIONS:
        return refusal(400, "ValidationException", "output_dimension is invalid")
    vectors: Any = [vector(text, size) for text in texts]
    told = {"id": "e1", "texts": texts, "response_type": "embeddings_floats"}
    return counted({**told, "embeddings": vectors}, sum(len(text.split()) for text in texts))


def vector(text: str, size: int) -> list[float]:
    """The vector of a text: exact in 32 bits, and different for each text."""
    first = float(sum(text.encode()) % 65536)
    return [first, *[0.5] * (size - 1)]
