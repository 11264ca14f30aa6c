"""Writes docs/columns.md from the definitions of the system tables and views; ``--check`` only
compares. What a column means is written here, once for all tables in which it means the same."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from mltables.dialect.result_types import databricks_type
from mltables.table_definitions import TABLES
from mltables.views import VIEWS

PATH: Final = Path(__file__).with_name("columns.md")

INTRODUCTION: Final = """\
# Columns of the system tables

`make docs` generates this page from the definitions in `layers/tables`; a test keeps the page true.

Types are written as in Databricks. In the lists of the columns of the system tables, a column that
may be NULL has *yes* under *null*; every column of a view may be NULL. [What the system tables are
for, and how to query them](system-tables.md).

Each Delta table except `experiments_latest` also has a partition column, which queries through the
server do not show: `insert_date` in the tables of metric history and audit, `start_month` in that
of runs, `request_date` in those of traces, assessments and spans, and `create_month` in those of
models, versions, datasets, their records and jobs.
"""

EVERYWHERE: Final[Mapping[str, str]] = {
    "account_id": "the AWS account of the deployment; twelve zeros on a laptop",
    "workspace_id": "the workspace in which the row's entity is now",
    "experiment_id": "the experiment",
    "trace_id": "the trace",
    "run_id": "the run",
    "name": "the name",
    "description": "the description",
    "create_time": "when the entity was created, as in MLflow",
    "last_update_time": "when the entity was last updated, as in MLflow",
    "update_time": "when the item in DynamoDB was last changed, by any write",
    "delete_time": "when the entity was deleted; NULL while it is active",
    "insert_time": "when the row was published",
    "tags": "the tags",
    "request_time": "when the trace began",
    "client_request_id": "the id that the client gave the request",
    "state": "`OK`, `ERROR`, `IN_PROGRESS` or `STATE_UNSPECIFIED`",
    "trace_metadata": "the trace's metadata",
    "input_tokens": "input tokens, where the client or the provider counted them",
    "output_tokens": "output tokens, likewise",
    "total_tokens": "all tokens, likewise",
    "cache_read_input_tokens": "input tokens that were read from the provider's cache",
    "cache_creation_input_tokens": "input tokens that were written to the provider's cache",
    "input_cost": "cost of the input tokens in US dollars; NULL if it is not known",
    "output_cost": "cost of the output tokens in US dollars, likewise",
    "total_cost": "both costs, likewise",
    "span_id": "the span",
    "parent_span_id": "the span around this one; NULL of a root",
    "kind": "OpenTelemetry's kind, such as `SPAN_KIND_INTERNAL`",
    "start_time_unix_nano": "when the span began, in nanoseconds since 1970",
    "end_time_unix_nano": "when it ended, likewise",
    "attributes": "the attributes; a value that is no text is written as JSON",
    "events": "the events, each with its attributes",
    "links": "links to other spans, each with its attributes",
    "status": "OpenTelemetry's status; `code` is `STATUS_CODE_UNSET`, `_OK` or `_ERROR`",
    "time": "when the span began, as a time",
    "endpoint_id": "the endpoint of the AI gateway",
    "endpoint_name": "the name that it had at the call",
    "latency_ms": "how long the call took, in a stream until its end",
    "requester": "the user; NULL without authentication",
    "status_code": "the HTTP status: 200 for success, NULL for an error without a status",
    "registered_model_id": "the id of a model for its lifetime; a rename keeps it",
    "is_prompt": "whether the model is a prompt",
    "custom_properties": "custom properties of Kubeflow's API, each value as JSON of its type",
    "kubeflow_id": "the id in Kubeflow's API; NULL until that API creates or reads the entity",
    "external_id": "the external id in Kubeflow's API",
    "dataset_id": "the evaluation dataset",
    "created_by": "the user in the tag `mlflow.user` of the creating request",
    "user_name": "the user; NULL if nobody logged in, or after an erasure",
    "user_id": "the user's pseudonym; NULL if nobody logged in",
    "key_id": "the API key of the login; NULL for other logins",
    "rpc": "the route",
    "method": "the HTTP method",
    "http_status": "the answer's status",
    "outcome": "`done`, `refused` or `failed`",
    "event_time": "when the request ended",
    "milliseconds": "how long the function worked on the request",
    "read_units": "read capacity units of DynamoDB",
    "write_units": "write capacity units of DynamoDB",
    "round_trips": "sequential round trips to DynamoDB",
    "memory_mb": "the function's memory; NULL on a laptop",
    "spans": "the trace's spans, by start",
    "assessments": "the trace's assessments, by creation",
    "error_message": "the error's text",
    "status_message": "the status in words",
    "source": "from where the version was registered",
}
"""By column, in all tables whose own meanings below lack it."""
_NEVER: Final = "always NULL: MLflow does not store it"
_NOT_RECORDED: Final = "always NULL: the gateway does not record it"
_NO_TAGS: Final = "always empty: the gateway does not record it"
OWN: Final[Mapping[str, Mapping[str, str]]] = {
    "experiments_latest": {"name": "the experiment's name"},
    "runs_latest": {
        "created_by": "the user who was logged in when the run was made; else the client's user",
        "update_time": "when the run's item was last changed, or its experiment deleted with it",
        "start_time": "when the run began",
        "end_time": "when it ended",
        "run_name": "the run's name",
        "status": "`RUNNING`, `SCHEDULED`, `FINISHED`, `FAILED` or `KILLED`",
        "params": "the parameters",
        "aggregated_metrics": "latest, least and greatest value of each metric",
    },
    "run_metrics_history": {
        "insert_time": "when the point's item in DynamoDB was written",
        "record_id": "a hash of run, metric, step, timestamp and value",
        "metric_name": "the metric",
        "metric_time": "the point's timestamp",
        "metric_step": "the point's step",
        "metric_value": "the point's value; NaN and infinities are values",
    },
    "traces": {
        "trace_name": "the tag `mlflow.traceName`",
        "execution_duration_ms": "how long the trace took",
        "user_id": "the metadata `mlflow.trace.user`",
        "session_id": "the metadata `mlflow.trace.session`",
        "source_run_id": "the metadata `mlflow.sourceRun`",
        "request_preview": "the beginning of the request",
        "response_preview": "the beginning of the response",
        "linked_prompts": "versions of prompts, as `name/version`",
    },
    "assessments": {
        "request_time": "when the assessed trace began",
        "assessment_id": "the assessment",
        "assessment_name": "its name",
        "assessment_type": "`feedback`, `expectation` or `issue`",
        "value": "the value as JSON; NULL if there is none",
        "numeric_value": "the value, if it is a finite number; 1 or 0 for a boolean",
        "error_code": "of feedback that failed: the error",
        "source_type": "`HUMAN`, `LLM_JUDGE`, `CODE` or `SOURCE_TYPE_UNSPECIFIED`",
        "source_id": "who or what assessed",
        "run_id": "the run in which the assessment was made",
        "span_id": "the span that is assessed; NULL for the whole trace",
        "rationale": "the reason",
        "overrides": "the assessment that this one replaces",
        "valid": "false if another assessment replaces this one",
        "metadata": "the metadata",
    },
    "spans": {"request_time": "when the span's trace began"},
    "registered_models": {
        "latest_versions": "the greatest version in each stage",
        "aliases": "the version of each alias",
    },
    "model_versions": {
        "version": "the version's number",
        "current_stage": "`None`, `Staging`, `Production` or `Archived`",
        "status": "`READY`; an imported version keeps its status",
        "user_id": "the author given to Kubeflow's API, or the user of an imported version",
        "storage_location": "where its files are; if it is NULL, they are at the source",
        "run_link": "a link to the run elsewhere",
        "model_id": "the logged model of which the version was made",
    },
    "evaluation_datasets": {
        "digest": "changes when records are added or changed, not when they are deleted",
        "last_updated_by": "the same tag in the records that were last added or changed",
        "experiment_ids": "the experiments to which the dataset belongs",
        "schema": "the fields of the records, as JSON",
        "profile": "the number of the records, as JSON; `null` if all were deleted",
    },
    "evaluation_dataset_records": {
        "created_by": "the tag `mlflow.user` that the record had when it was added",
        "last_updated_by": "the tag `mlflow.user` that was last given to the record",
        "record_id": "the record; follows from the dataset and the inputs",
        "inputs": "the inputs, as JSON",
        "outputs": "the outputs, as JSON",
        "expectations": "the expectations, as JSON",
        "source_type": "from where the record is, such as `TRACE`",
        "source_id": "the source's id",
        "source": "the source's data, as JSON",
    },
    "jobs": {
        "job_id": "the job",
        "job_name": "the work, such as `invoke_scorer`",
        "status": "`PENDING`, `RUNNING`, `SUCCEEDED`, `FAILED`, `TIMEOUT` or `CANCELED`",
        "creator": "the user who started the job; NULL without authentication",
        "deadline": "a job that is not done then has timed out",
        "params": "what was asked, as JSON",
        "result": "the outcome, as JSON",
        "retry_count": "retries",
        "completed": "units of work that are done, such as traces or sessions",
        "total": "all units of work of the job",
    },
    "audit_log": {
        "record_id": "the row",
        "workspace_id": "the request's workspace",
        "login": "`password`, `token`, `session`, `key`, `signature` or `none`",
        "is_admin": "whether the caller is an administrator",
        "address": "the caller's IP address",
        "entity": "ids and names in the request, as JSON",
        "sequence": "the row's place in the chain of hashes",
        "previous_hash": "the hash of the row before",
        "hash": "the row's hash",
    },
    "trace_unified": {
        "execution_duration_ms": "how long the trace took",
        "request": "the root span's inputs, else the preview",
        "response": "the root span's outputs, else the preview",
    },
    "trace_metadata": {},
    "otel_spans": {
        "record_id": "the row: the trace and the span",
        "date": "the UTC day on which the span began",
        **dict.fromkeys(
            (
                *("service_name", "trace_state", "flags", "dropped_attributes_count"),
                *("dropped_events_count", "dropped_links_count", "resource"),
                *("resource_schema_url", "instrumentation_scope", "span_schema_url"),
            ),
            _NEVER,
        ),
    },
    "gateway_usage": {
        "trace_id": "the call's trace",
        "experiment_id": "the experiment of the call's trace",
        "request_time": "when the call began",
        "request_type": "such as `unified/chat`",
        "caller": "the calling program",
        "user_name": "the user; NULL without authentication",
        "provider": "the provider that was asked last",
        "model": "the model that was asked last",
        "attempts": "how many requests were sent to models",
        "outcome": "`OK` or `ERROR`",
        "error_status": "the HTTP status of an error, if it has one",
    },
    "ai_gateway_usage": {
        "account_id": _NOT_RECORDED,
        "request_id": "the call's trace",
        "event_time": "when the call began",
        "user_agent": "the calling program",
        "api_type": "such as `unified/chat`",
        "destination_type": "`EXTERNAL_MODEL`; NULL if no model was asked",
        "destination_name": "the provider that was asked last",
        "destination_model": "the model that was asked last",
        "token_details": "tokens read from and written to the provider's cache",
        "endpoint_tags": _NO_TAGS,
        "request_tags": _NO_TAGS,
        **dict.fromkeys(
            (
                *("service_name", "service_type", "time_to_first_byte_ms", "requester_type"),
                *("invocation_metadata", "routing_information", "mcp_metadata"),
            ),
            _NOT_RECORDED,
        ),
    },
    "serving_endpoint_usage": {
        "account_id": _NOT_RECORDED,
        "databricks_request_id": "the call's trace",
        "request_time": "when the call began",
        "input_token_count": "input tokens",
        "output_token_count": "output tokens",
        "served_entity_id": "the endpoint",
        "usage_context": _NO_TAGS,
        **dict.fromkeys(
            (
                *("client_request_id", "input_character_count", "output_character_count"),
                "request_streaming",
            ),
            _NOT_RECORDED,
        ),
    },
    "serving_served_entities": {
        "served_entity_id": "the endpoint's id",
        "workspace_id": "the workspace of the endpoint's last call",
        "endpoint_name": "the endpoint's name at its last call",
        "served_entity_name": "the endpoint's name, too",
        "endpoint_id": "the endpoint",
        "entity_type": "`EXTERNAL_MODEL`",
        "entity_name": "the model that was asked last",
        "external_model_config": "the provider that was asked last",
        **dict.fromkeys(
            (
                *("account_id", "created_by", "entity_version", "endpoint_config_version", "task"),
                *("foundation_model_config", "custom_model_config", "feature_spec_config"),
                *("change_time", "endpoint_delete_time"),
            ),
            _NOT_RECORDED,
        ),
    },
    "request_costs": {
        "workspace_id": "the request's workspace",
        "experiment_id": "the experiment of the request; NULL without one, or with several",
        "memory_mb": "the function's memory; 1024 where it was not recorded",
        "api_gateway_usd": "API Gateway, in US dollars at list prices",
        "lambda_usd": "Lambda, likewise",
        "dynamodb_usd": "DynamoDB, likewise",
        "total_usd": "the sum",
    },
}
"""By table and column."""


def markdown() -> str:
    return "\n".join([INTRODUCTION, *_sections()])


def _sections() -> Iterator[str]:
    columns = {
        **{
            table.name: [(name, kind, null) for name, kind, _, null in table.columns]
            for table in TABLES
        },
        **{
            view: [(name, kind, True) for name, kind in VIEWS[view].columns.items()]
            for view in VIEWS
        },
    }
    for table, meanings in OWN.items():
        kind = "A view." if table in VIEWS else "A Delta table."
        yield f"## system.mlflow.{table}\n\n{kind}\n"
        yield "| column | type | null | meaning |"
        yield "|---|---|---|---|"
        for name, of, null in columns.pop(table):
            meaning = meanings.get(name) or EVERYWHERE[name]
            shown = f"`{databricks_type(of)}`"
            yield f"| `{name}` | {shown} | {'yes' if null else ''} | {meaning} |"
        yield ""
    if columns:
        raise KeyError(f"OWN lacks {', '.join(columns)}")


def main(arguments: list[str]) -> int:
    """Writes the file, or says whether it is as it should be."""
    if "--check" in arguments:
        return int(PATH.read_text(encoding="utf-8") != markdown())
    PATH.write_text(markdown(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
