"""Searches registered models, prompts and their versions."""

from __future__ import annotations

from typing import Any

from mlcore.auth.permissions import (
    PROMPT,
    PROMPT_VERSION,
    REGISTERED_MODEL,
    REGISTERED_MODEL_VERSION,
)
from mlcore.http import Request
from mlcore.repos.registry import model_version_search, registered_model_search
from registry import messages as m


def search_registered_models(message: m.SearchRegisteredModels, request: Request) -> dict[str, Any]:
    return registered_model_search.search(
        request.workspace,
        message.filter,
        message.max_results,
        message.order_by,
        message.page_token,
        _may_read(request, REGISTERED_MODEL, PROMPT),
    )


def list_registered_models(message: m.ListRegisteredModels, request: Request) -> dict[str, Any]:
    return registered_model_search.search(
        request.workspace,
        "",
        message.max_results,
        [],
        message.page_token,
        _may_read(request, REGISTERED_MODEL, PROMPT),
    )


def search_model_versions(message: m.SearchModelVersions, request: Request) -> dict[str, Any]:
    return model_version_search.search(
        request.workspace,
        message.filter,
        message.max_results,
        message.order_by,
        message.page_token,
        _may_read(request, REGISTERED_MODEL_VERSION, PROMPT_VERSION),
    )


def _may_read(
    request: Request, model_type: str, prompt_type: str
) -> registered_model_search.ModelReader:
    """Returns a function that says whether the caller may read a model or prompt.

    Args:
        model_type: the type of resource whose permissions apply to models.
        prompt_type: the type of resource whose permissions apply to prompts.
    """
    may_read_model, may_read_prompt = request.may_read(model_type), request.may_read(prompt_type)
    return lambda name, is_prompt: (may_read_prompt if is_prompt else may_read_model)(name)
