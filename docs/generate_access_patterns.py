"""Writes docs/access-patterns.md from key patterns and models; ``--check`` only compares."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from mlcore.db import keys
from mlcore.db.keys import Pattern
from mlcore.models.by_type import MODELS

PATH = Path(__file__).with_name("access-patterns.md")

INTRODUCTION = """\
# Access patterns

Generated from `mlcore.db.keys` and `mlcore.models` by `make docs`; a test
keeps it true.

One table, partition key `PK`, sort key `SK`; five local indexes (`PK`, `lsiNsk`) and five global
ones (`gsiNpk`, `gsiNsk`), all KEYS_ONLY and sparse. Reads of the table and of local indexes are
strongly consistent; global indexes may lag.

In the patterns below, numbers are padded to one length, `<inv_value>` is ordered descending with
NaN last, and `<inv_run_id>`,
`<inv_trace_id>` and `<inv_model_id>` are ordered descending. Ids, and texts that
something follows, are escaped (`#` is `$23`, `$` is `$24`; in names and values that are there to be
sorted, so is all that sorts before them); a text that ends its key is written as it is. What would
pass DynamoDB's limits (2,048 bytes for a partition key, 1,024 for a sort key) is cut and ends in
`~` and a hash. So a key finds an item, and the item's attributes say what it is called.

Every item also has `type` (its name in the first column), `version`, `updated_at` (ms) and, when it
expires, `ttl` (s).
"""


class Access(NamedTuple):
    """An access pattern: the pattern of its key, and the functions that serve it."""

    operation: str
    pattern: str
    functions: tuple[str, ...]
    mechanism: str


ACCESS: dict[str, tuple[Access, ...]] = {
    "Experiments": (
        Access("Get experiment by id", "experiment", ("experiment",), "GetItem"),
        Access(
            "Get experiment by name, consistently",
            "experiment_name_lock",
            ("experiment_name_lock",),
            "GetItem, then GetItem of the experiment",
        ),
        Access("Get experiment by name", "gsi3_experiment", ("gsi3_experiment",), "Query"),
        Access("List experiments in workspace", "gsi2_experiment", ("gsi2_experiment",), "Query"),
        Access(
            "List experiments by name, search their names",
            "gsi5_experiment",
            ("gsi5_experiment", "gsi5_experiment_begin"),
            "Query, begins_with",
        ),
        Access(
            "Create or rename experiment",
            "experiment_name_lock",
            ("experiment", "experiment_name_lock"),
            "TransactWriteItems: the lock makes the name unique",
        ),
        Access(
            "Give a new experiment its number", "id_counter", ("id_counter",), "UpdateItem, ADD"
        ),
        Access("Delete/restore experiment", "experiment", ("experiment",), "UpdateItem"),
        Access(
            "Set experiment tag",
            "experiment_tag",
            ("experiment", "experiment_tag"),
            "UpdateItem of the experiment; the tag's item follows from it",
        ),
        Access(
            "List tags of experiment",
            "experiment_tag",
            ("experiment_tag_prefix",),
            "Query, begins_with",
        ),
        Access(
            "Search experiment names by their end",
            "experiment_name_rev",
            ("experiment_name_rev",),
            "GetItem",
        ),
        Access("Search experiments (FTS)", "gsi2_fts", ("gsi2_fts", "gsi2_fts_prefix"), "Query"),
    ),
    "Runs": (
        Access(
            "Get run by id, consistently",
            "run_ref",
            ("run_ref", "run"),
            "GetItem (remembered), then GetItem of the run",
        ),
        Access("Get run by id", "gsi1_run", ("gsi1_run", "run"), "Query, then GetItem"),
        Access("List runs in experiment", "run", ("run_prefix",), "Query, begins_with"),
        Access("Filter runs by lifecycle", "lsi1_run", ("lsi1_run_prefix",), "Query, begins_with"),
        Access("Sort runs by start time", "lsi2_run", ("lsi2_run_prefix",), "Query, begins_with"),
        Access("Filter runs by status", "lsi3_run", ("lsi3_run_prefix",), "Query, begins_with"),
        Access(
            "Sort runs by name",
            "lsi4_run",
            ("lsi4_run_prefix", "lsi4_run_name_prefix"),
            "Query, begins_with",
        ),
        Access(
            "Sort runs by metric",
            "lsi5_run",
            ("lsi5_run_prefix", "lsi5_run_range"),
            "Query, begins_with or BETWEEN",
        ),
        Access(
            "Runs that the indexer has not followed yet",
            "lsi5_run_mark",
            ("lsi5_run_mark_prefix",),
            "Query, begins_with, before any index",
        ),
        Access(
            "Experiments that may have such runs",
            "marked_experiment",
            ("marked_experiment",),
            "Query, every few minutes",
        ),
        Access("Create run", "run", ("run", "run_ref"), "TransactWriteItems"),
        Access("Update, delete, restore run", "run", ("run",), "UpdateItem"),
    ),
    "Run data": (
        Access(
            "Log metrics, params, tags (log batch)",
            "run",
            ("run",),
            "UpdateItem of the run's maps; the items below follow from it",
        ),
        Access(
            "Latest metrics of run",
            "run_metric",
            ("run_metric", "run_child_prefix"),
            "Query, begins_with",
        ),
        Access(
            "Log metric history",
            "run_metric_batch",
            ("run_metric_batch",),
            "PutItem, one for all points of a request",
        ),
        Access(
            "Pack metric history",
            "run_metric_history",
            ("run_metric_batch_prefix", "run_metric_history", "run_metric_file"),
            "Query, begins_with; packs or a file; then the batches go",
        ),
        Access(
            "Get metric history",
            "run_metric_history",
            ("run_metric_batches", "run_metric_history_prefix"),
            "two Queries in this order: batches and items of files between two keys; packs,"
            " begins_with",
        ),
        Access(
            "Get a page of a long metric history",
            "lsi2_metric_history",
            (
                "run_metric_batch_from",
                "run_metric_file_prefix",
                "lsi2_metric_history",
                "lsi2_metric_history_prefix",
                "lsi2_metric_history_from",
                "run_metric_history",
            ),
            "batches, items of files, then LSI2 between two keys, a Query for each class of spans"
            " side by side; BatchGetItem of the packs of the page",
        ),
        Access(
            "Get all params of run",
            "run_param",
            ("run_param", "run_child_prefix"),
            "Query, begins_with",
        ),
        Access(
            "Get all tags of run", "run_tag", ("run_tag", "run_child_prefix"), "Query, begins_with"
        ),
        Access(
            "Inputs of run", "run_input", ("run_input", "run_child_prefix"), "Query, begins_with"
        ),
    ),
    "Search and ranking": (
        Access(
            "Search runs by metric value",
            "rank_metric",
            ("rank_metric_prefix", "rank_metric_range"),
            "Query, begins_with or BETWEEN; greatest first",
        ),
        Access(
            "Metrics of runs that were settled together",
            "rank_rows",
            ("rank_rows", "rank_rows_prefix", "rank_rows_range"),
            "Query, BETWEEN, side by side with pages",
        ),
        Access(
            "How often rows were sorted",
            "rank_rows_sorted",
            ("rank_rows_sorted",),
            "GetItem, and with the rows",
        ),
        Access(
            "Segments of a metric",
            "rank_segment",
            ("rank_segment", "rank_segment_prefix"),
            "Query, begins_with",
        ),
        Access("Pages of segments", "rank_page", ("rank_page",), "BatchGetItem"),
        Access(
            "Search runs by param value",
            "rank_param",
            ("rank_param_prefix", "rank_param_value_prefix", "rank_param_begin"),
            "Query, begins_with",
        ),
        Access(
            "Full-text search in experiment",
            "fts",
            ("fts_prefix", "fts_of_type_prefix", "fts_begin", "fts_numbers"),
            "Query, begins_with or BETWEEN",
        ),
        Access("Words and values of an experiment", "fts_texts", ("fts_texts",), "GetItem"),
        Access("Full-text search, global", "gsi2_fts", ("gsi2_fts",), "Query"),
        Access(
            "Full-text index cleanup",
            "fts_rev",
            ("fts_rev_prefix", "fts"),
            "Query, begins_with, then BatchWriteItem deletes",
        ),
        Access(
            "Writes that earlier versions marked",
            "pending",
            ("pending_prefix",),
            "Query, begins_with, before any index",
        ),
    ),
    "Traces": (
        Access(
            "Get trace by id, consistently",
            "trace_ref",
            ("trace_ref", "trace"),
            "GetItem (remembered), then GetItem of the trace",
        ),
        Access("Get trace by id", "gsi1_trace", ("gsi1_trace", "trace"), "Query, then GetItem"),
        Access("List traces in experiment", "trace", ("trace_prefix",), "Query, begins_with"),
        Access(
            "Traces that the indexer has not followed yet",
            "lsi1_trace",
            ("lsi1_trace_prefix",),
            "Query, begins_with, before any index",
        ),
        Access("Sort traces by time", "lsi2_trace", ("lsi2_trace_prefix",), "Query, begins_with"),
        Access(
            "Filter traces by status", "lsi3_trace", ("lsi3_trace_prefix",), "Query, begins_with"
        ),
        Access("Sort traces by name", "lsi4_trace", ("lsi4_trace_prefix",), "Query, begins_with"),
        Access("Traces of a session", "lsi5_trace", ("lsi5_trace_prefix",), "Query, begins_with"),
        Access("Set trace tag", "trace_tag", ("trace", "trace_tag"), "UpdateItem of the trace"),
        Access("Tags of trace", "trace_tag", ("trace_tag_prefix",), "Query, begins_with"),
        Access(
            "Metadata, assessments, prompts of trace that have no room in it",
            "trace_metadata",
            (
                "trace_metadata",
                "trace_metadata_prefix",
                "trace_assessment",
                "trace_assessment_prefix",
                "trace_prompt",
                "trace_prompt_prefix",
            ),
            "Query, begins_with",
        ),
        Access(
            "Get trace spans",
            "trace_spans",
            ("trace_spans_prefix", "trace_spans", "trace_spans_pack"),
            "Query, begins_with; GetItem for those that came first",
        ),
        Access("Link traces to run", "trace_link", ("trace_link",), "BatchWriteItem"),
        Access("Traces linked to run", "trace_link", ("trace_link_prefix",), "Query, begins_with"),
        Access(
            "Create trace and spans",
            "trace",
            ("trace", "trace_spans", "trace_ref"),
            "TransactWriteItems",
        ),
    ),
    "Datasets": (
        Access("Create dataset", "dataset", ("dataset", "dataset_part"), "PutItem, parts first"),
        Access("Get dataset", "dataset", ("dataset",), "BatchGetItem (remembered)"),
        Access("List datasets in experiment", "dataset", ("dataset_prefix",), "Query, begins_with"),
        Access("Link dataset to run", "dataset_link", ("dataset_link",), "PutItem"),
        Access(
            "List datasets of run", "dataset_link", ("dataset_link_prefix",), "Query, begins_with"
        ),
        Access(
            "Search runs by dataset",
            "dataset_link",
            ("dataset_links_prefix",),
            "Query, begins_with, where the links are fewer than the runs",
        ),
    ),
    "Logged models": (
        Access("Log model to run", "run_logged_model", ("run", "run_logged_model"), "UpdateItem"),
        Access(
            "List logged models of run",
            "run_logged_model",
            ("run_child_prefix",),
            "Query, begins_with",
        ),
        Access(
            "Create logged model",
            "logged_model",
            ("logged_model", "logged_model_ref"),
            "TransactWriteItems",
        ),
        Access(
            "Get logged model by id, consistently",
            "logged_model_ref",
            ("logged_model_ref", "logged_model"),
            "GetItem (remembered), then GetItem of the model",
        ),
        Access(
            "Set tags, log params",
            "logged_model",
            ("logged_model_param", "logged_model_param_prefix"),
            "UpdateItem; items of their own for what the model has no room for",
        ),
        Access(
            "List tags the model has no room for",
            "logged_model_tag",
            ("logged_model_tag", "logged_model_tag_prefix"),
            "Query, begins_with",
        ),
        Access(
            "Log metrics of a model",
            "logged_model_points",
            ("logged_model_points", "logged_model_points_prefix"),
            "UpdateItem of the model, later PutItem; Query, begins_with",
        ),
        Access(
            "List logged models, newest first",
            "lsi1_logged_model",
            ("lsi1_logged_model_prefix",),
            "Query, begins_with",
        ),
        Access(
            "Find logged models by name",
            "lsi4_logged_model",
            ("lsi4_logged_model_prefix",),
            "Query, begins_with",
        ),
        Access(
            "Find logged models by run",
            "lsi5_logged_model",
            ("lsi5_logged_model_prefix",),
            "Query, begins_with",
        ),
    ),
    "Model registry": (
        Access(
            "Create registered model",
            "registered_model",
            ("registered_model",),
            "PutItem with condition",
        ),
        Access("Get registered model", "registered_model", ("registered_model",), "GetItem"),
        Access("Get model by name", "gsi3_model", ("gsi3_model",), "Query"),
        Access("List registered models", "gsi5_model", ("gsi5_model",), "Query"),
        Access(
            "List registered models of another workspace",
            "gsi5_workspace_model",
            ("gsi5_model_pk",),
            "Query",
        ),
        Access(
            "Create model version",
            "model_version",
            ("registered_model", "model_version"),
            "TransactWriteItems",
        ),
        Access("Get model version", "model_version", ("model_version",), "GetItem"),
        Access("Whose versions are here", "model_home", ("model_home",), "GetItem"),
        Access("Let what is archived expire", "model_end", ("model_end",), "PutItem, DeleteItem"),
        Access(
            "Versions of a stage, greatest first",
            "lsi3_model_version",
            ("lsi3_model_version_prefix",),
            "Query",
        ),
        Access(
            "Versions made from a run",
            "run_model_version",
            ("run_model_version_prefix",),
            "Query, begins_with",
        ),
        Access(
            "Tags that a version has no room for",
            "model_version_tag",
            ("model_version_tag_prefix",),
            "Query, begins_with",
        ),
        Access(
            "List model versions", "model_version", ("model_version_prefix",), "Query, begins_with"
        ),
        Access("Set model tag", "model_tag", ("registered_model", "model_tag"), "UpdateItem"),
        Access("Tags of model", "model_tag", ("model_tag_prefix",), "Query, begins_with"),
        Access("Set model alias", "model_alias", ("model_alias",), "PutItem"),
        Access("Get model by alias", "model_alias", ("model_alias", "model_version"), "2 GetItem"),
        Access("Aliases of model", "model_alias", ("model_alias_prefix",), "Query, begins_with"),
    ),
    "Authentication and authorization": (
        Access("Create user", "user", ("user",), "PutItem with condition"),
        Access("Get or authenticate user", "user", ("user",), "GetItem"),
        Access(
            "Grant or check experiment permission",
            "experiment_permission",
            ("experiment_permission",),
            "PutItem, GetItem",
        ),
        Access(
            "List experiment permissions of user",
            "experiment_permission",
            ("experiment_permission_prefix",),
            "Query, begins_with",
        ),
        Access(
            "List permissions for experiment",
            "gsi4_experiment_permission",
            ("gsi4_experiment_permission",),
            "Query",
        ),
        Access(
            "Grant or check registry permission",
            "model_permission",
            ("model_permission",),
            "PutItem, GetItem",
        ),
        Access(
            "List registry permissions of user",
            "model_permission",
            ("model_permission_prefix",),
            "Query, begins_with",
        ),
        Access(
            "List permissions for model",
            "gsi4_model_permission",
            ("gsi4_model_permission",),
            "Query",
        ),
    ),
    "Roles and grants": (
        Access(
            "All that a user may", "user_grant", ("user_grant",), "Query of the user's partition"
        ),
        Access(
            "Grant anything",
            "user_grant",
            ("user_grant", "grantee"),
            "TransactWriteItems: the grant, and the entry in the list of the resource",
        ),
        Access("Who has a grant on a resource, consistently", "grantee", ("grantee",), "Query"),
        Access("List users", "user_name", ("user_name",), "Query, then one for each user"),
        Access(
            "Create or rename role",
            "role_name",
            ("role", "role_name"),
            "TransactWriteItems: the name makes the role unique in its workspace",
        ),
        Access("List roles", "role", ("role_prefix",), "Query, begins_with"),
        Access("Assign role", "user_role", ("user_role", "role_user"), "TransactWriteItems"),
        Access("List users of role", "role_user", ("role_user_prefix",), "Query, begins_with"),
        Access("Give out a number", "counter", ("counter",), "UpdateItem, ADD"),
        Access("Count a wrong password", "login", ("login",), "UpdateItem, ADD"),
    ),
    "Who names which files": (
        Access(
            "Enter a chosen location, or a version's",
            "location",
            ("location",),
            "TransactWriteItems",
        ),
        Access(
            "Who has files at, above or below a path",
            "location",
            ("locations_above", "locations_below"),
            "Query, begins_with, side by side; BatchGetItem of those found",
        ),
        Access("Is the list complete", "location_list", ("location_list",), "GetItem, PutItem"),
    ),
    "Workspace and configuration": (
        Access("Get, create, update workspace", "workspace", ("workspace",), "GetItem, PutItem"),
        Access("List workspaces", "workspace_name", ("workspace_name",), "Query, BatchGetItem"),
        Access("Get or set config value", "config", ("config",), "GetItem, PutItem"),
        Access("List all config", "config", ("config_prefix",), "Query, begins_with"),
    ),
    "Webhooks": (
        Access("Create, get, update, delete webhook", "webhook", ("webhook",), "one item each"),
        Access("List webhooks", "webhook", ("webhook_prefix",), "Query, begins_with"),
        Access("Receivers of an event", "webhook", ("webhook_prefix",), "Query, begins_with"),
    ),
    "Evaluation": (
        Access(
            "Create, get, change, delete evaluation dataset",
            "evaluation_dataset",
            ("evaluation_dataset",),
            "one item each, its version as the condition",
        ),
        Access(
            "Search evaluation datasets",
            "evaluation_dataset",
            ("evaluation_dataset_prefix",),
            "Query of the workspace, begins_with",
        ),
        Access(
            "Upsert, delete records",
            "evaluation_record",
            ("evaluation_record", "evaluation_record_prefix"),
            "BatchGetItem by the hash of the inputs, PutItem side by side",
        ),
        Access(
            "Page through, count records",
            "lsi2_evaluation_record",
            ("lsi2_evaluation_record", "lsi2_evaluation_records_after"),
            "Query on LSI2, between",
        ),
        Access(
            "Register, get, delete scorer",
            "scorer_version",
            ("scorer_version", "scorer_version_prefix"),
            "PutItem, GetItem, DeleteItem; the latest version by a Query backwards",
        ),
        Access(
            "Let a scorer judge by itself; all that do",
            "online_scorer",
            ("online_scorer", "online_scorer_prefix"),
            "PutItem, GetItem, DeleteItem; Query, begins_with",
        ),
        Access(
            "Up to which trace they have judged",
            "online_progress",
            ("online_progress",),
            "GetItem, PutItem on condition",
        ),
        Access(
            "Ask for, do, look at, search jobs",
            "job",
            ("job", "job_prefix"),
            "PutItem on condition, GetItem; Query, begins_with",
        ),
        Access(
            "Create, list label schemas",
            "label_schema",
            ("label_schema", "label_schema_prefix"),
            "TransactWriteItems with the name and the place; Query, begins_with",
        ),
        Access("Get label schema by name", "label_schema_name", ("label_schema_name",), "GetItem"),
        Access(
            "Create, list review queues",
            "review_queue",
            ("review_queue", "review_queue_prefix"),
            "TransactWriteItems with the name and the place; Query, begins_with",
        ),
        Access("Get review queue by name", "review_queue_name", ("review_queue_name",), "GetItem"),
        Access(
            "Add, remove, list items of a review queue",
            "review_queue_item",
            ("review_queue_item", "review_queue_item_prefix"),
            "PutItem side by side, BatchWriteItem; Query, begins_with",
        ),
        Access(
            "Create, get, search issues",
            "issue",
            ("issue", "issue_prefix"),
            "TransactWriteItems with the place; Query, begins_with",
        ),
        Access(
            "Label schema, review queue, issue by id",
            "entity_ref",
            ("entity_ref",),
            "GetItem of the place, then of the entity",
        ),
    ),
    "MCP registry": (
        Access(
            "Create, get, change, delete MCP server",
            "mcp_server",
            ("mcp_server",),
            "one item each, its version as the condition",
        ),
        Access(
            "Search MCP servers, their versions and access endpoints",
            "mcp_server",
            ("mcp_server_prefix",),
            "Query of the workspace's partition",
        ),
        Access(
            "Get versions of an MCP server",
            "mcp_server_version",
            ("mcp_server_version",),
            "BatchGetItem, beside the server",
        ),
        Access(
            "Delete what the versions of an MCP server say",
            "mcp_server_version",
            ("mcp_server_version_prefix",),
            "Query, begins_with",
        ),
    ),
    "AI gateway": (
        Access(
            "All of a workspace: secrets, models, endpoints, guardrails",
            "gateway_endpoint",
            ("gateway_configuration",),
            "Query of the partition, which holds nothing else",
        ),
        Access(
            "Change any of it",
            "gateway_configuration",
            (
                "gateway_configuration",
                "gateway_secret",
                "gateway_model_definition",
                "gateway_endpoint",
                "gateway_guardrail",
            ),
            "GetItem of the count, Query, TransactWriteItems with the count as the condition",
        ),
        Access(
            "Create, get, change, delete budget policy",
            "gateway_budget",
            ("gateway_budget",),
            "one item each, its version as the condition",
        ),
        Access(
            "Budget policies of a workspace, and global ones",
            "gateway_budget",
            ("gateway_budget_prefix",),
            "Query of all",
        ),
        Access(
            "Count and read what calls have cost",
            "gateway_spending",
            ("gateway_spending",),
            "UpdateItem, ADD; BatchGetItem",
        ),
    ),
    "Kubeflow's model registry": (
        Access(
            "Give a model, version, artifact … its number",
            "id_counter",
            ("id_counter",),
            "UpdateItem, ADD",
        ),
        Access(
            "Get model, version, experiment, run by number",
            "context_ref",
            ("context_ref",),
            "GetItem, then BatchGetItem of the entity and its parent's reference",
        ),
        Access(
            "Find version, run, artifact by name and parent",
            "context_child",
            ("context_ref", "context_child"),
            "BatchGetItem, then GetItem of the entity",
        ),
        Access(
            "List artifacts, inference services, serve models of a parent",
            "context_child",
            ("context_child_prefix",),
            "Query, begins_with, then BatchGetItem",
        ),
        Access("Get artifact", "artifact", ("artifact",), "GetItem"),
        Access(
            "Get serving environment",
            "serving_environment",
            ("serving_environment",),
            "GetItem",
        ),
        Access("Get inference service", "inference_service", ("inference_service",), "GetItem"),
        Access("Get serve model", "serve_model", ("serve_model",), "GetItem"),
        Access(
            "Find serving environment by name",
            "context_name",
            ("context_name",),
            "GetItem, then GetItem of the environment",
        ),
        Access(
            "Find anything by external id",
            "external_id",
            ("external_id",),
            "GetItem, then as by number",
        ),
        Access(
            "List all entities of a kind by number",
            "gsi2_number",
            ("gsi2_number",),
            "Query, then BatchGetItem",
        ),
        Access(
            "List what MLflow made and no list has shown yet",
            "gsi2_unseen",
            ("gsi2_unseen",),
            "Query",
        ),
        Access(
            "List entities of a kind by time of creation",
            "gsi1_created",
            ("gsi1_created", "time_and_number"),
            "Query, then BatchGetItem",
        ),
        Access(
            "List entities of a kind by time of the last update",
            "gsi4_updated",
            ("gsi4_updated", "gsi4_updated_sk", "time_and_number"),
            "Query, then BatchGetItem",
        ),
    ),
    "Model catalog": (
        Access("Which generation is read", "catalog", ("catalog",), "GetItem"),
        Access(
            "Whether a page's generation can still be read",
            "catalog_generation",
            ("catalog_generation", "catalog_generation_prefix"),
            "GetItem; Query, begins_with, where generations are swept",
        ),
        Access(
            "All models and MCP servers of a generation",
            "catalog_shard",
            ("catalog_shard", "catalog_shards"),
            "BatchGetItem, all shards side by side",
        ),
    ),
}

NUMBERED = {
    "registered_model",
    "model_version",
    "run",
    "artifact",
    "serving_environment",
    "inference_service",
    "serve_model",
}
"""What has a number."""
SHARED = {"registered_model", "model_version"}
LISTED = {
    "gsi1_created": NUMBERED - {"run"},
    "gsi2_number": NUMBERED,
    "gsi2_unseen": SHARED,
    "gsi4_updated": NUMBERED - {"run"},
}
"""What the indexes of lists hold."""

WRITERS = {
    "api": "API",
    "indexer": "indexer",
    "both": "API and indexer",
    "overflow": "indexer; API when the parent is full",
}


def markdown() -> str:
    """The text of docs/access-patterns.md."""
    return "\n".join([INTRODUCTION, *_items(), *_indexes(), *_access()])


def _items() -> Iterator[str]:
    yield "## Items\n"
    yield _row("type", "PK", "SK", "what", "written by", "indexes", "attributes")
    yield _row(*["---"] * 7)
    for pattern in keys.PATTERNS.values():
        model = MODELS[pattern.name]
        common = {*MODELS["config"].get_attributes()} - {"key", "value"}
        attributes = [
            name
            for name in model.get_attributes()
            if name not in common and name[:3] not in {"lsi", "gsi"}
        ]
        module = model.__module__.rpartition(".")[2]
        yield _row(
            f"`{pattern.name}`",
            f"`{pattern.pk.text}`",
            f"`{pattern.sk.text}`",
            f"`{module}.{model.__name__}`: {pattern.meaning}",
            WRITERS[pattern.writer],
            " ".join(_indexes_of(pattern)) or "–",
            " ".join(f"`{name}`" for name in attributes) or "–",
        )
    yield ""


def _indexes() -> Iterator[str]:
    yield "## Indexes\n"
    yield _row("index", "partition key", "sort key", "gives", "function")
    yield _row(*["---"] * 5)
    for pattern in keys.INDEXES.values():
        yield _row(
            pattern.index,
            f"`{pattern.pk.text}`",
            f"`{pattern.sk.text}`",
            pattern.meaning,
            _signature(pattern.name),
        )
    yield ""


def _access() -> Iterator[str]:
    yield "## Access patterns\n"
    for group, accesses in ACCESS.items():
        yield f"### {group}\n"
        yield _row("operation", "key", "functions of `mlcore.db.keys`", "mechanism")
        yield _row(*["---"] * 4)
        for access in accesses:
            pattern = {**keys.PATTERNS, **keys.INDEXES}[access.pattern]
            yield _row(
                access.operation,
                _place(pattern),
                ", ".join(map(_signature, access.functions)),
                access.mechanism,
            )
        yield ""


def _place(pattern: Pattern) -> str:
    pk, sk = f"`{pattern.pk.text}`", f"`{pattern.sk.text}`"
    return f"{pattern.index}: {pk}, {sk}" if pattern.index else f"{pk}, {sk}"


def _indexes_of(pattern: Pattern) -> list[str]:
    entity = {"registered_model": "model"}.get(pattern.name, pattern.name)
    return [
        index.index
        for name, index in keys.INDEXES.items()
        if name.partition("_")[2] == entity or pattern.name in LISTED.get(name, ())
    ]


def _signature(function: str) -> str:
    parameters = inspect.signature(getattr(keys, function)).parameters
    return f"`{function}({', '.join(parameters)})`"


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def main(arguments: list[str]) -> int:
    """Writes the file, or says whether it is as it should be."""
    if "--check" in arguments:
        return int(PATH.read_text(encoding="utf-8") != markdown())
    PATH.write_text(markdown(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
