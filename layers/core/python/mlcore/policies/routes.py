"""The policies of all routes, from those of each domain."""

from __future__ import annotations

from mlcore.policies import experiments, logged_models, runs, ui, users
from mlcore.policies.requests import Follow, Policy, Route

POLICIES: dict[Route, Policy] = {
    **experiments.POLICIES,
    **runs.POLICIES,
    **logged_models.POLICIES,
    **users.POLICIES,
    **ui.POLICIES,
}
"""A route that is missing here is refused to everybody but administrators; a test names them."""

AFTERWARDS: dict[Route, Follow] = {
    **experiments.AFTERWARDS,
    **runs.AFTERWARDS,
    **logged_models.AFTERWARDS,
}
