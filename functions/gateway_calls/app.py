"""The routes of calls through the AI gateway: MLflow's own, and those that pass on what OpenAI's,
Anthropic's and Gemini's clients send."""

from __future__ import annotations

from functools import partial

from gateway_calls import chats, embeddings, models, passing
from gateway_calls.answers import MANNER
from gateway_calls.bodies import parse
from mlcore.http import PlainRoute, lambda_handler, nothing
from mlcore.providers import provider as p

_OF_NAMED = "gateway_calls.use_endpoint"

RPCS = ()
PLAIN_ROUTES = (
    PlainRoute(
        "POST",
        "/gateway/{endpoint_name}/mlflow/invocations",
        parse,
        embeddings.invocations,
        _OF_NAMED,
        since="3.8",
    ),
    PlainRoute(
        "POST",
        "/gateway/mlflow/v1/chat/completions",
        parse,
        chats.completions,
        _OF_NAMED,
        since="3.8",
    ),
    PlainRoute(
        "GET",
        "/gateway/mlflow/v1/models",
        nothing,
        models.list_models,
        "requests.anybody",
        since="3.17",
        cost=1,
    ),
    *(
        PlainRoute(
            "POST",
            f"/gateway{p.ROUTES[action]}",
            parse,
            partial(passing.pass_on, action),
            _OF_NAMED,
            since=since,
        )
        for action, since in (
            (p.OPENAI_CHAT, "3.8"),
            (p.OPENAI_EMBEDDINGS, "3.8"),
            (p.OPENAI_RESPONSES, "3.8"),
            (p.OPENAI_RESPONSES_COMPACT, "3.17"),
            (p.ANTHROPIC_MESSAGES, "3.8"),
        )
    ),
    *(
        PlainRoute(
            "POST",
            f"/gateway{p.ROUTES[action]}".replace("_name}", "_name+}"),
            parse,
            partial(passing.pass_on, action),
            _OF_NAMED,
            since="3.8",
        )
        for action in (p.GEMINI_GENERATE_CONTENT, p.GEMINI_STREAM_GENERATE_CONTENT)
    ),
)

handler = lambda_handler(RPCS, PLAIN_ROUTES, MANNER)
