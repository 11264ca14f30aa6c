"""The searches of the registry."""

from __future__ import annotations

from typing import Any

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
    )


def search_model_versions(message: m.SearchModelVersions, request: Request) -> dict[str, Any]:
    return model_versions.search(
        request.workspace,
        message.filter,
        message.max_results,
        message.order_by,
        message.page_token,
    )
