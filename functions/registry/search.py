"""The searches of the registry."""

from __future__ import annotations

from typing import Any

from mlcore.auth.permissions import (
    PROMPT,
    PROMPT_VERSION,
    REGISTERED_MODEL,
    REGISTERED_MODEL_VERSION,
)
from mlcore.http import Request
from mlcore.queries import model_versions, registered_models
from registry import messages as m


def search_registered_models(message: m.SearchRegisteredModels, request: Request) -> dict[str, Any]:
    return registered_models.search(
        request.workspace,
        message.filter,
        message.max_results,
        message.order_by,
        message.page_token,
        _reader(request, REGISTERED_MODEL, PROMPT),
    )


def list_registered_models(message: m.ListRegisteredModels, request: Request) -> dict[str, Any]:
    return registered_models.search(
        request.workspace,
        "",
        message.max_results,
        [],
        message.page_token,
        _reader(request, REGISTERED_MODEL, PROMPT),
    )


def search_model_versions(message: m.SearchModelVersions, request: Request) -> dict[str, Any]:
    return model_versions.search(
        request.workspace,
        message.filter,
        message.max_results,
        message.order_by,
        message.page_token,
        _reader(request, REGISTERED_MODEL_VERSION, PROMPT_VERSION),
    )


def _reader(request: Request, of_models: str, of_prompts: str) -> registered_models.ModelReader:
    models, prompts = request.may_read(of_models), request.may_read(of_prompts)
    return lambda name, is_prompt: (prompts if is_prompt else models)(name)
