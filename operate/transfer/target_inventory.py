"""Lists the ids and names of entities in the table, to compare them with the source server's.
Writes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mlcore.db import keys
from mlcore.db.table import key_of_item, table
from mlcore.entities.experiments import Experiment
from mlcore.entities.gateway import Configuration
from mlcore.entities.lifecycle_stages import ACTIVE
from mlcore.models.base import KEY
from mlcore.repos import mcp_servers
from mlcore.repos.evaluation import datasets, issues, label_schemas, review_queues, scorers
from mlcore.repos.experiments import experiments
from mlcore.repos.gateway import budgets, configuration
from mlcore.repos.registry import registered_models
from operate.transfer import gateway, guardrails


def experiment_ids(workspace: str) -> Iterator[str]:
    """Yields the ids of a workspace's experiments. A default experiment that has no item in the
    table is left out."""
    for experiment_id in experiments.ids_of_workspace(workspace):
        if table.get(keys.experiment(experiment_id)) is not None:
            yield experiment_id


def run_ids(experiment_id: str) -> Iterator[str]:
    """Yields the ids of the runs that an experiment has in this product's table, including deleted
    runs, because the list of the other server includes them too."""
    return _of(experiment_id, "LSI2", keys.lsi2_run_prefix(), "run_id")


def logged_model_ids(experiment_id: str) -> Iterator[str]:
    """Yields the ids of the active logged models of an experiment in the DynamoDB table. Deleted
    ones are left out, because the source server does not list them."""
    return _of(experiment_id, "LSI1", keys.lsi1_logged_model_prefix(ACTIVE), "model_id")


def trace_ids(experiment_id: str) -> Iterator[str]:
    return _of(experiment_id, "LSI2", keys.lsi2_trace_prefix(), "trace_id")


def registered_model_names(workspace: str) -> Iterator[str]:
    places = [key for _, key in registered_models.listed(workspace)]
    for stored in registered_models.find_many(places, workspace):
        yield stored.model.name


def dataset_ids(workspace: str) -> Iterator[str]:
    for dataset in datasets.of_workspace(workspace):
        yield dataset.dataset_id


def scorer_names(experiment: Experiment) -> Iterator[str]:
    for version in scorers.latest_of_experiment(experiment):
        yield version.name


def label_schema_ids(experiment: Experiment) -> Iterator[str]:
    for schema in label_schemas.of_experiment(experiment):
        yield schema.schema_id


def review_queue_ids(experiment: Experiment) -> Iterator[str]:
    for queue in review_queues.of_experiment(experiment):
        yield queue.queue_id


def issue_ids(experiment: Experiment) -> Iterator[str]:
    for issue in issues.of_experiment(experiment):
        yield issue.issue_id


def mcp_server_names(workspace: str) -> Iterator[str]:
    for server in mcp_servers.of_workspace(workspace):
        yield server.name


class GatewayUses(NamedTuple):
    """The bindings, budget policies, guardrails and guardrail assignments of a workspace's gateway
    in the table, each as an identifying text. ``compare`` reports those that the source server
    lacks. ``uses`` are pairs of endpoint and guardrail."""

    bindings: list[str]
    budget_policies: list[str]
    guardrails: list[str]
    uses: list[str]


def gateway_parts(workspace: str) -> Configuration:
    """Returns the AI gateway's configuration of a workspace, as this product's table has it:
    secrets, model definitions and endpoints by id, and more."""
    return configuration.read(workspace)


def gateway_uses(workspace: str) -> GatewayUses:
    known = configuration.read(workspace)
    endpoints = known.endpoints.values()
    return GatewayUses(
        [
            gateway.binding_identity(endpoint.endpoint_id, binding)
            for endpoint in endpoints
            for binding in endpoint.bindings
        ],
        [policy.budget_policy_id for policy in budgets.of_workspace(workspace)],
        list(known.guardrails),
        [
            guardrails.use_identity(endpoint.endpoint_id, use)
            for endpoint in endpoints
            for use in endpoint.guardrails
            if use.guardrail_id in known.guardrails
        ],
    )


def _of(experiment_id: str, index: str, prefix: str, attribute: str) -> Iterator[str]:
    pk = keys.experiment(experiment_id).pk
    for item in table.query_all(pk, index=index, prefix=prefix, attributes=KEY):
        yield keys.parse(*key_of_item(item)).fields[attribute]
