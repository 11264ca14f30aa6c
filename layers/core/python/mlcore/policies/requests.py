"""What policies are made of: requirements on an experiment and on what belongs to one."""

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
from mlcore.auth.requirements import NOT_DENIED, Requirement, Rung
from mlcore.environment import workspaces_enabled
from mlcore.policies.access import Access
from mlcore.repos.experiments import experiments
from mlcore.repos.runs import runs

Policy = Callable[[Access, Any], bool]
"""Whether a caller may do what a message asks. Of a plain route the message is its request."""

Follow = Callable[[Access, Any, Mapping[str, Any]], None]
"""What a successful call means for grants: caller, message, response body."""


def anybody(access: Access, message: Any) -> bool:
    """Who is logged in may; what the answer holds is chosen by what the caller may read."""
    return True


def public(access: Access, message: Any) -> bool:
    """Nobody needs to log in: :mod:`mlcore.policies.guard` names the paths."""
    return True


def administrators(access: Access, message: Any) -> bool:
    """Administrators are let through before any policy is asked."""
    return False


def subject(message: Any, *fields: str) -> str:
    """The id or the name that a message is about, by the first of the fields that it has.

    Raises:
        InvalidParameterValue: it has none of them.
    """
    for field in fields:
        if message.has(field):
            return str(getattr(message, field))
    raise errors.InvalidParameterValue(
        f"Missing value for required parameter '{fields[0]}'. "
        "See the API docs for more information about request parameters."
    )


def on_experiment(action: str) -> Policy:
    """The action on the experiment that a message names."""

    def policy(access: Access, message: Any) -> bool:
        return access.allows(Requirement(EXPERIMENT, subject(message, "experiment_id"), action))

    return policy


def inside(experiment_id: str, resource_type: str, action: str) -> tuple[Requirement, Requirement]:
    """An action on something in an experiment, which inherits what holds for the experiment."""
    return (
        Requirement(EXPERIMENT, experiment_id, "read"),
        inherited(experiment_id, resource_type, action),
    )


def inherited(
    experiment_id: str, resource_type: str, action: str, otherwise: str | None = None
) -> Requirement:
    """An action on a type of things in an experiment; without a grant on the type the experiment
    must allow the action, or ``otherwise``."""
    rung = Rung(EXPERIMENT, experiment_id, otherwise or action)
    return Requirement(resource_type, ANY, action, (rung,))


def creating(experiment_id: str, resource_type: str) -> tuple[Requirement, Requirement]:
    """A new thing in an experiment: no grant on its type gives the right, DENY takes it."""
    return (
        Requirement(EXPERIMENT, experiment_id, "update"),
        Requirement(resource_type, ANY, NOT_DENIED),
    )


def across(
    experiment_ids: Iterable[str], resource_type: str, action: str
) -> list[Requirement] | None:
    """An action on things in several experiments; None when there is no experiment."""
    distinct = list(dict.fromkeys(experiment_ids))
    return [part for each in distinct for part in inside(each, resource_type, action)] or None


def on_runs(access: Access, run_ids: Iterable[str], action: str) -> bool:
    """Whether the caller may do something with runs. One that is missing is refused like one of
    somebody else or of another workspace, so that nobody learns which ids exist."""
    found: set[str] = set()
    for run_id in dict.fromkeys(run_ids):
        experiment_id = runs.locate(run_id)
        if experiment_id is None or not access.allows(*inside(experiment_id, RUN, action)):
            return False
        found.add(experiment_id)
    return are_here(access, found)


def are_here(access: Access, experiment_ids: Iterable[str]) -> bool:
    """Whether experiments are in the request's workspace, for what was found by its id alone."""
    if not workspaces_enabled():
        return True
    return experiments.are_in(sorted(experiment_ids), access.workspace)


def version_type(resource_type: str) -> str:
    """The type of the versions of a registered model or prompt."""
    return PROMPT_VERSION if resource_type == PROMPT else REGISTERED_MODEL_VERSION


def on_mcp_versions(name: str, action: str) -> tuple[Requirement, Requirement]:
    """An action on versions of an MCP server, which inherit what holds for it."""
    rung = Rung(MCP_SERVER, name, action)
    return (
        Requirement(MCP_SERVER, name, "read"),
        Requirement(MCP_SERVER_VERSION, ANY, action, (rung,)),
    )
