"""Routes of the Lambda function ``gateway_calls``: calls through the AI gateway, in MLflow's own
form and in those of the OpenAI, Anthropic and Gemini clients, and requests through the gateway's
proxy."""

from __future__ import annotations

from functools import partial

from gateway_calls import chats, embeddings, invocations, models, passthrough
from gateway_calls.durations import with_durations
from gateway_calls.replies import RESPONSE_STYLE
from gateway_calls.request_parsing import parse, parse_proxy
from mlcore.http import PlainRoute, lambda_handler, nothing
from mlcore.providers import provider as p

_POLICY = "gateway_calls.use_endpoint"

RPCS = ()
PLAIN_ROUTES = (
    PlainRoute(
        "POST",
        "/gateway/{endpoint_name}/mlflow/invocations",
        parse,
        invocations.invocations,
        _POLICY,
        since="3.8",
    ),
    PlainRoute(
        "POST",
        "/gateway/mlflow/v1/chat/completions",
        parse,
        chats.completions,
        _POLICY,
        since="3.8",
    ),
    PlainRoute("POST", "/gateway/mlflow/v1/embeddings", parse, embeddings.embed, _POLICY, since=""),
    *(
        PlainRoute(
            "GET",
            path,
            nothing,
            models.list_models,
            "shared_rules.anybody",
            since="3.17",
            cost=1,
        )
        for path in ("/gateway/mlflow/v1/models", "/gateway/openai/v1/models")
    ),
    *(
        PlainRoute(
            method,
            "/gateway/proxy/{endpoint_name}/{path+}",
            parse_proxy,
            passthrough.proxy,
            policy,
            since=since,
        )
        for method, policy, since in (
            ("POST", _POLICY, "3.12"),
            ("GET", "gateway_calls.read_stored", ""),
            ("DELETE", "gateway_calls.change_stored", ""),
            ("PATCH", "gateway_calls.change_stored", ""),
        )
    ),
    *(
        PlainRoute(
            "POST",
            f"/gateway{p.ROUTES[action]}",
            parse,
            partial(passthrough.pass_on, action),
            _POLICY,
            since=since,
        )
        for action, since in (
            (p.OPENAI_CHAT, "3.8"),
            (p.OPENAI_EMBEDDINGS, "3.8"),
            (p.OPENAI_RESPONSES, "3.8"),
            (p.OPENAI_RESPONSES_COMPACT, "3.17"),
            (p.ANTHROPIC_MESSAGES, "3.8"),
            (p.ANTHROPIC_COUNT_TOKENS, "3.8"),
        )
    ),
    *(
        PlainRoute(
            "POST",
            f"/gateway{p.ROUTES[action]}".replace("_name}", "_name+}").replace("v1beta", version),
            parse,
            partial(passthrough.pass_on, action),
            _POLICY,
            since="3.8",
        )
        for action in (p.GEMINI_GENERATE_CONTENT, p.GEMINI_STREAM_GENERATE_CONTENT)
        for version in ("v1beta", "v1")
    ),
)

handler = with_durations(lambda_handler(RPCS, PLAIN_ROUTES, RESPONSE_STYLE))
