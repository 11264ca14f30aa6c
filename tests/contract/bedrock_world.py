"""Endpoints whose models are at a double of Amazon Bedrock, called by the role of the function or
by keys of a secret."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mlcore import aws_clients
from mlcore.db.signature import Credentials
from mlcore.repos.gateway import configuration
from mlcore.repos.traces import span_packs
from tests.contract.gateway_world import endpoint, model
from tests.contract.sealing import seal_here
from tests.contract.trace_calls import infos
from tests.doubles.bedrock_models import answer
from tests.doubles.providers import Provider, serving

Json = dict[str, Any]

MODEL = "arn:aws:bedrock:eu-central-1:123456789012:inference-profile/eu.vendor.model-v1:0"
ACCESS_KEY, SECRET_KEY, TOKEN = "AKIDCALLEROFMODELS", "8sEcReT/key+of=models", "t0ken//of+a+role=="
OWN = {"auth_mode": "default_chain"}
TURNS: list[Json] = [{"role": "user", "content": [{"text": "hello there"}]}]
KEYS = {"aws_access_key_id": ACCESS_KEY, "aws_secret_access_key": SECRET_KEY}
BY_KEYS = {"auth_mode": "access_keys", "aws_region_name": "us-east-2"}


def path_of(name: str) -> str:
    """The name of a model as a path has it."""
    return name.replace(":", "%3A").replace("/", "%2F")


@contextmanager
def bedrock_here(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Iterator[Provider]:
    """Where AWS's clients are told that Bedrock is; a function with the credentials of a role.
    Nothing allows private addresses, for no secret names this one."""
    seal_here(monkeypatch, folder)
    monkeypatch.setattr(
        aws_clients, "process_credentials", lambda: Credentials("ASIAROLE", SECRET_KEY, TOKEN)
    )
    monkeypatch.setenv("AWS_REGION", "eu-west-3")
    with serving(answer) as provider:
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", provider.url)
        yield provider


def ready(
    name: str,
    model_name: str = MODEL,
    secret: Json | None = None,
    auth_config: Json | None = None,
    provider: str = "bedrock",
    **more: Any,
) -> str:
    """The id of an endpoint with a model that the function's role calls, unless a secret says
    otherwise."""
    made = model(
        name,
        provider,
        model_name=model_name,
        secret={} if secret is None else secret,
        auth_config=OWN if auth_config is None else auth_config,
    )
    return endpoint(name, [made], **more)


def outputs_of(endpoint_id: str) -> list[Any]:
    """What the traces of an endpoint's calls tell of the answers, the newest first."""
    experiment = str(configuration.read("default").endpoints[endpoint_id].experiment_id)
    owners = [span_packs.Owner("default", experiment, i["trace_id"]) for i in infos(experiment)]
    roots = [
        next(span for _, line in span_packs.read(owner) if is_root(span := json.loads(line)))
        for owner in owners
    ]
    return [json.loads(root["attributes"]["mlflow.spanOutputs"]) for root in roots]


def is_root(span: Json) -> bool:
    return not span.get("parent_span_id")


def traced(endpoint_id: str) -> list[tuple[float, Json]]:
    """The cost and the tokens of each call of an endpoint, the newest first; -1 without a price."""
    experiment = configuration.read("default").endpoints[endpoint_id].experiment_id
    told = [info["trace_metadata"] for info in infos(str(experiment))]
    return [
        (
            json.loads(metadata.get("mlflow.trace.cost", '{"total_cost": -1}'))["total_cost"],
            json.loads(metadata.get("mlflow.trace.tokenUsage", "{}")),
        )
        for metadata in told
    ]
