"""Building blocks of policies: rules that many routes share, and requirements on experiments and
their contents.

A policy takes the caller's rights (:class:`mlcore.policies.access.Access`) and the request's parsed
message, and returns whether the call is allowed. An *action* is read, use, update, delete, manage,
create or not_denied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mlcore import errors
from mlcore.auth.permissions import (
    ANY,
    EXPERIMENT,
    MCP_SERVER,
    MCP_SERVER_VERSION,
    PROMPT,
    PROMPT_VERSION,
    REGISTERED_MODEL_VERSION,
    RUN,
)
from mlcore.auth.requirements import NOT_DENIED, InheritedFrom, Requirement
from mlcore.environment import workspaces_enabled
from mlcore.policies.access import Access
from mlcore.repos.experiments import experiments
from mlcore.repos.runs.core import runs

Policy = Callable[[Access, Any], bool]
"""Takes the caller and the request's message (for a plain route the parsed request). Returns
whether the caller may make the request."""

Follow = Callable[[Access, Any, Mapping[str, Any]], None]
"""Updates grants after a successful call; takes caller, message and response body."""


def anybody(access: Access, message: Any) -> bool:
    """Allows every logged-in user. The route's function leaves out of its answer what the caller
    may not read."""
    return True


def public(access: Access, message: Any) -> bool:
    """Allows every call, also without login. It is the policy of the paths that
    :mod:`mlcore.policies.route_authorization` lists as public."""
    return True


def administrators(access: Access, message: Any) -> bool:
    """Refuses everybody: administrators are let through before a policy is called."""
    return False


def subject(message: Any, *fields: str) -> str:
    """Returns the id or name of the resource that a message is about: the value of the first of
    ``fields`` that the message has. Raises InvalidParameterValue if the message has none of
    them."""
    for field in fields:
        if message.has(field):
            return str(getattr(message, field))
    raise errors.InvalidParameterValue(
        f"Missing value for required parameter '{fields[0]}'. "
        "See the API docs for more information about request parameters."
    )


def on_experiment(action: str) -> Policy:
    """Returns the policy that requires the action on the experiment that a message names."""

    def policy(access: Access, message: Any) -> bool:
        return access.allows(Requirement(EXPERIMENT, subject(message, "experiment_id"), action))

    return policy


def inside(experiment_id: str, resource_type: str, action: str) -> tuple[Requirement, Requirement]:
    """Returns the requirements for an action on a resource (such as a run) in an experiment; the
    resource inherits the grants on the experiment."""
    return (
        Requirement(EXPERIMENT, experiment_id, "read"),
        inherited(experiment_id, resource_type, action),
    )


def inherited(
    experiment_id: str, resource_type: str, action: str, otherwise: str | None = None
) -> Requirement:
    """Returns the requirement for an action on all resources of a type in an experiment. Without a
    grant on the type, the experiment's grants must allow the action, or ``otherwise`` if given."""
    parent = InheritedFrom(EXPERIMENT, experiment_id, otherwise or action)
    return Requirement(resource_type, ANY, action, (parent,))


def create_inside(experiment_id: str, resource_type: str) -> tuple[Requirement, Requirement]:
    """Returns the requirements for creating a resource in an experiment: the right to update the
    experiment. A grant on the type cannot replace it, but DENY on the type forbids it."""
    return (
        Requirement(EXPERIMENT, experiment_id, "update"),
        Requirement(resource_type, ANY, NOT_DENIED),
    )


def inside_each(
    experiment_ids: Iterable[str], resource_type: str, action: str
) -> list[Requirement] | None:
    """Returns what permissions an action on resources of a type in several experiments requires;
    None if no experiment is named."""
    distinct = list(dict.fromkeys(experiment_ids))
    return [
        requirement
        for experiment_id in distinct
        for requirement in inside(experiment_id, resource_type, action)
    ] or None


def on_runs(access: Access, run_ids: Iterable[str], action: str) -> bool:
    """Whether the caller may do the action on each run. A missing run is refused like one without a
    grant or of another workspace, so that ids cannot be probed."""
    distinct = list(dict.fromkeys(run_ids))
    if _in_experiments(access, runs.locate_all(distinct), action):
        return True
    # A run may have been moved since this process cached its experiment.
    return runs.relocate(distinct) and _in_experiments(access, runs.locate_all(distinct), action)


def _in_experiments(access: Access, located: Iterable[str | None], action: str) -> bool:
    """Whether the caller may do the action on runs in each of the experiments; False if one is
    None, the experiment of a missing run."""
    experiment_ids: set[str] = set()
    for experiment_id in located:
        if experiment_id is None or not access.allows(*inside(experiment_id, RUN, action)):
            return False
        experiment_ids.add(experiment_id)
    return are_in_workspace(access, experiment_ids)


def are_in_workspace(access: Access, experiment_ids: Iterable[str]) -> bool:
    """Whether all these experiments are in the request's workspace. Needed for resources that were
    found by id alone, without the workspace."""
    if not workspaces_enabled():
        return True
    return experiments.are_in(sorted(experiment_ids), access.workspace)


def version_type(resource_type: str) -> str:
    """Returns the resource type of a model's versions: of prompt versions if ``resource_type`` is
    that of prompts, else of registered model versions."""
    return PROMPT_VERSION if resource_type == PROMPT else REGISTERED_MODEL_VERSION


def on_mcp_versions(name: str, action: str) -> tuple[Requirement, Requirement]:
    """Returns the requirements for an action on versions of an MCP server, which inherit the
    server's grants."""
    parent = InheritedFrom(MCP_SERVER, name, action)
    return (
        Requirement(MCP_SERVER, name, "read"),
        Requirement(MCP_SERVER_VERSION, ANY, action, (parent,)),
    )
