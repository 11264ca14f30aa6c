"""The resources on which rights can be explained, with the policies of the routes that act on
them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from mlcore import errors
from mlcore.auth.permissions import (
    EXPERIMENT,
    GATEWAY_ENDPOINT,
    INDIVIDUAL_TYPES,
    PROMPT,
    REGISTERED_MODEL,
)
from mlcore.auth.requirements import Requirement
from mlcore.policies import experiments as experiment_policies
from mlcore.policies import registry as model_policies
from mlcore.policies import runs as run_policies
from mlcore.policies import users as user_policies
from mlcore.policies.access import Access
from mlcore.policies.shared_rules import Policy
from mlcore.repos.experiments import experiments
from mlcore.repos.gateway import configuration
from mlcore.repos.runs.core import runs
from operate.module_loading import CannotRun

ACTIONS: Final = ("read", "use", "update", "delete", "manage")
_MODELS: Final = ("model", REGISTERED_MODEL, PROMPT)


class Resource(NamedTuple):
    """A resource, and for each action on the resource the policy that the product applies to a
    route of this action."""

    name: str
    policies: Mapping[str, Policy]
    message: Any


class Naming:
    """A request message that names a resource and has no other field. The product's policies read
    from it which resource a request is about."""

    def __init__(self, **fields: str) -> None:
        self.__dict__.update(fields)

    def has(self, name: str) -> bool:
        return name in self.__dict__


def resource_named(text: str, workspace: str) -> Resource:
    """Returns the resource in a text such as ``model:churn``, ``experiment:7``, ``run:<id>`` or
    ``gateway:<endpoint>``, or with another type of grants before the colon. Raises CannotRun for an
    unknown type and for a missing experiment, run, model or endpoint."""
    kind, _, name = text.partition(":")
    if kind == EXPERIMENT and name:
        return _experiment(name, workspace)
    if kind == "run" and name:
        return _run(name)
    if kind in _MODELS and name:
        return _model(name, workspace)
    if kind == "gateway" and name:
        return _granted(GATEWAY_ENDPOINT, _endpoint_id(name, workspace))
    if kind in INDIVIDUAL_TYPES and name:
        return _granted(kind, name)
    kinds = sorted({"model", "run", "gateway", *INDIVIDUAL_TYPES})
    raise CannotRun(f"--on takes TYPE:NAME, with one of the types {', '.join(kinds)}")


def _experiment(experiment_id: str, workspace: str) -> Resource:
    experiment = experiments.find(experiment_id, workspace)
    if experiment is None:
        raise CannotRun(f"there is no experiment {experiment_id} in workspace {workspace}")
    policies = {
        "read": experiment_policies.read_experiment,
        "update": experiment_policies.update_experiment,
        "delete": experiment_policies.delete,
        "manage": experiment_policies.manage,
    }
    message = Naming(experiment_id=experiment_id)
    return Resource(f"experiment {experiment_id} ({experiment.name})", policies, message)


def _run(run_id: str) -> Resource:
    if runs.locate(run_id) is None:
        raise CannotRun(f"there is no run {run_id}")
    policies = {
        "read": run_policies.read_run,
        "update": run_policies.update_run,
        "delete": run_policies.delete_run,
    }
    return Resource(f"run {run_id}", policies, Naming(run_id=run_id))


def _model(name: str, workspace: str) -> Resource:
    kind = model_policies.kind_of(workspace, name)
    if kind is None:
        raise CannotRun(f"there is no model {name} in workspace {workspace}")
    policies: dict[str, Policy] = {
        "read": model_policies.read_model,
        "update": model_policies.update_model,
        "delete": model_policies.delete,
    }
    if kind == REGISTERED_MODEL:  # grants on prompts are made by administrators only
        policies["manage"] = user_policies.manage_model
    return Resource(f"{kind} {name}", policies, Naming(name=name))


def _endpoint_id(name: str, workspace: str) -> str:
    endpoint = configuration.read(workspace).endpoint_named(name)
    if endpoint is None:
        raise CannotRun(f"there is no endpoint {name} in workspace {workspace}")
    return endpoint.endpoint_id


def _granted(kind: str, name: str) -> Resource:
    """Returns a resource of a type whose routes need no lookup: each action requires a grant on the
    type and name directly."""
    policies = {action: partial(_requires, (kind, name, action)) for action in ACTIONS}
    return Resource(f"{kind} {name}", policies, None)


def _requires(wanted: tuple[str, str, str], access: Access, _message: Any) -> bool:
    try:
        return access.allows(Requirement(*wanted))
    except errors.InvalidParameterValue as error:
        raise CannotRun(error.message) from error
