"""Who may do what with logged models."""

from __future__ import annotations

from collections.abc import Iterable

from mlcore.policies.access import Access
from mlcore.policies.requests import Follow, Policy, Route


def on_models(access: Access, model_ids: Iterable[str], action: str) -> bool:
    return not list(model_ids)


POLICIES: dict[Route, Policy] = {}
AFTERWARDS: dict[Route, Follow] = {}
