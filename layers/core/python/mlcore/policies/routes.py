"""The policies of all routes, from those of each domain."""

from __future__ import annotations

from mlcore.policies import (
    artifacts,
    evaluation,
    experiments,
    logged_models,
    registry,
    reviews,
    runs,
    traces,
    ui,
    users,
    webhooks,
    workspaces,
)
from mlcore.policies.requests import Follow, Policy, Route

POLICIES: dict[Route, Policy] = {
    **experiments.POLICIES,
    **runs.POLICIES,
    **logged_models.POLICIES,
    **registry.POLICIES,
    **traces.POLICIES,
    **artifacts.POLICIES,
    **webhooks.POLICIES,
    **evaluation.POLICIES,
    **reviews.POLICIES,
    **users.POLICIES,
    **ui.POLICIES,
    **workspaces.POLICIES,
}
"""A route that is missing here is refused to everybody but administrators; a test names them."""

AFTERWARDS: dict[Route, Follow] = {
    **registry.AFTERWARDS,
    **evaluation.AFTERWARDS,
}
