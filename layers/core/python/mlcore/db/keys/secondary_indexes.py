"""Keys in the secondary indexes.

In an experiment's partition, META items (runs, traces and logged models themselves) have LSI keys,
and of the child items only packs of metric history (LSI2) and packs of spans that the indexer has
not processed (LSI1). The packs' keys have prefixes of their own, so a Query for META items never
returns a child.

Keys of META items in LSI1 to LSI3 end in the inverted id: read backwards, they return the newest
items first and items of the same time by ascending id. In LSI4, keys of runs and traces end in the
plain id and are read forwards; keys of logged models are read backwards and end in the inverted id.
In LSI5 they end in the inverted id, and NaN sorts above every number. Marks of unprocessed items
(LSI1 and LSI5) have no inverted id. No index key is empty: each contains a literal, or is a name
that MLflow requires.
"""

from __future__ import annotations

from mlcore.db.keys.pattern import UPPER_BOUND, IndexKey, Pattern
from mlcore.db.keys.registry import place_of_model
from mlcore.db.sortable import escape_ordered, parse_integer
from mlcore.entities.workspaces import DEFAULT_WORKSPACE

_EXP = "EXP#<experiment_id>"

_FIRST = "\0"
"""The least text except the empty one, which is not allowed as an index key."""

_MAX_PREFIX = 150
"""Maximum characters of a searched prefix; keys shorten names only at a greater length."""


def _local(number: int, entity: str, sk: str, meaning: str) -> Pattern:
    return Pattern(f"lsi{number}_{entity}", _EXP, sk, meaning, index=f"LSI{number}")


def _global(number: int, entity: str, pk: str, sk: str, meaning: str) -> Pattern:
    return Pattern(f"gsi{number}_{entity}", pk, sk, meaning, index=f"GSI{number}")


LSI1_RUN = _local(1, "run", "<stage>#R#<time>#<inv_run_id>", "runs of a stage by start time")
LSI2_RUN = _local(2, "run", "R#<time>#<inv_run_id>", "runs by start time")
LSI3_RUN = _local(3, "run", "<status>#R#<time>#<inv_run_id>", "runs of a status by start time")
LSI4_RUN = _local(4, "run", "R#<run_name>#<run_id>", "runs by name")
LSI5_RUN = _local(5, "run", "R#<key>#<double>#<inv_run_id>", "runs by their primary metric")
LSI5_RUN_MARK = _local(
    5,
    "run_mark",
    "PENDING#R#<run_id>#<version>",
    "runs that the indexer has not yet processed",
)
LSI1_TRACE = _local(
    1,
    "trace",
    "PENDING#T#<trace_id>#<suffix>",
    "traces and spans that the indexer has not yet processed",
)
LSI2_TRACE = _local(2, "trace", "T#<time>#<inv_trace_id>", "traces by request time")
LSI3_TRACE = _local(
    3, "trace", "<status>#T#<time>#<inv_trace_id>", "traces of a status by request time"
)
LSI4_TRACE = _local(4, "trace", "T#<trace_name>#<trace_id>", "traces by name")
LSI5_TRACE = _local(
    5, "trace", "T#<session>#<time>#<inv_trace_id>", "traces of a session by request time"
)
LSI3_MODEL_VERSION = Pattern(
    "lsi3_model_version",
    "RM#<model_name>",
    "<stage>#V#<version>",
    "versions of a stage by number",
    index="LSI3",
)
LSI1_LOGGED_MODEL = _local(
    1,
    "logged_model",
    "<stage>#LM#<time>#<inv_model_id>",
    "logged models of a stage by creation time",
)
LSI4_LOGGED_MODEL = _local(
    4,
    "logged_model",
    "LM#<logged_model_name>#<time>#<inv_model_id>",
    "logged models by name and creation time",
)
LSI5_LOGGED_MODEL = _local(
    5,
    "logged_model",
    "LM#<run_id>#<time>#<inv_model_id>",
    "logged models by the run that created them, if any",
)

GSI1_RUN = _global(1, "run", "RUN#<run_id>", "EXP#<experiment_id>", "the experiment of a run")
GSI1_TRACE = _global(
    1, "trace", "TRACE#<trace_id>", "EXP#<experiment_id>", "the experiment of a trace"
)
GSI2_EXPERIMENT = _global(
    2, "experiment", "WS#<workspace>", "EXP#<experiment_id>", "experiments of a workspace"
)
GSI2_FTS = _global(
    2, "fts", "FTS#<token>", "<level>#<entity_type>#<entity_id>", "entities that contain a token"
)
GSI3_EXPERIMENT = _global(
    3, "experiment", "EXPNAME#<experiment_name>", "EXP#<experiment_id>", "experiment by name"
)
GSI3_MODEL = _global(3, "model", "RMNAME#<model_name>", "RM#<model_name>", "model by name")
GSI4_EXPERIMENT_PERMISSION = _global(
    4,
    "experiment_permission",
    "EXPPERM#<experiment_id>",
    "USER#<username>",
    "users with a permission on an experiment",
)
GSI4_MODEL_PERMISSION = _global(
    4,
    "model_permission",
    "RMPERM#<model_name>",
    "USER#<username>",
    "users with a permission on a model",
)
GSI5_EXPERIMENT = _global(
    5, "experiment", "WS#<workspace>#EXP", "<experiment_name>", "experiments by name"
)
GSI5_MODEL = _global(5, "model", "RM_LIST", "<model_name>", "registered models by name")
GSI5_WORKSPACE_MODEL = _global(
    5,
    "workspace_model",
    "RM_LIST#<workspace>",
    "<model_name>",
    "registered models of a workspace other than the default one, by name",
)

INDEX_PATTERNS = (
    LSI1_RUN,
    LSI2_RUN,
    LSI3_RUN,
    LSI4_RUN,
    LSI5_RUN,
    LSI5_RUN_MARK,
    LSI1_TRACE,
    LSI2_TRACE,
    LSI3_TRACE,
    LSI4_TRACE,
    LSI5_TRACE,
    LSI3_MODEL_VERSION,
    LSI1_LOGGED_MODEL,
    LSI4_LOGGED_MODEL,
    LSI5_LOGGED_MODEL,
    GSI1_RUN,
    GSI1_TRACE,
    GSI2_EXPERIMENT,
    GSI2_FTS,
    GSI3_EXPERIMENT,
    GSI3_MODEL,
    GSI4_EXPERIMENT_PERMISSION,
    GSI4_MODEL_PERMISSION,
    GSI5_EXPERIMENT,
    GSI5_MODEL,
    GSI5_WORKSPACE_MODEL,
)


def lsi1_run(stage: str, start_time: int, run_id: str) -> str:
    return LSI1_RUN.sk.build(stage.upper(), start_time, run_id)


def lsi1_run_prefix(stage: str) -> str:
    return LSI1_RUN.sk.prefix(stage.upper())


def lsi2_run(start_time: int, run_id: str) -> str:
    return LSI2_RUN.sk.build(start_time, run_id)


def lsi2_run_prefix() -> str:
    return LSI2_RUN.sk.prefix()


def lsi3_run(status: str, start_time: int, run_id: str) -> str:
    return LSI3_RUN.sk.build(status, start_time, run_id)


def lsi3_run_prefix(status: str) -> str:
    return LSI3_RUN.sk.prefix(status)


def lsi4_run(run_name: str, run_id: str) -> str:
    return LSI4_RUN.sk.build(run_name, run_id)


def lsi4_run_name_prefix(run_name: str) -> str:
    """Returns the prefix of the LSI4 sort keys of the runs with exactly this name."""
    return LSI4_RUN.sk.prefix(run_name)


def lsi4_run_begin(text: str) -> str:
    """Returns the prefix of the LSI4 sort keys of all runs whose name begins with the text. A long
    text is shortened, so more runs may match."""
    return LSI4_RUN.sk.prefix() + escape_ordered(text)[:_MAX_PREFIX]


def lsi5_run(key: str, value: float, run_id: str) -> str:
    return LSI5_RUN.sk.build(key, value, run_id)


def lsi5_run_mark(run_id: str, since: int) -> str:
    """Returns a run's mark: the LSI5 sort key that says that the indexer has not processed the
    run's versions from ``since`` on."""
    return LSI5_RUN_MARK.sk.build(run_id, since)


def lsi5_run_mark_prefix() -> str:
    return LSI5_RUN_MARK.sk.prefix()


def marked_since(lsi5sk: str) -> int | None:
    """Returns the first version of a run that the indexer has not processed, from the run's LSI5
    sort key; None if the key is not a mark."""
    if not lsi5sk.startswith(LSI5_RUN_MARK.sk.prefix()):
        return None
    return parse_integer(lsi5sk.rpartition("#")[2])


def lsi1_trace(trace_id: str, suffix: str) -> str:
    """Returns the mark of a trace or of a pack of spans: the LSI1 sort key that says that the
    indexer has not processed it.

    ``suffix``: for a trace, its first version that the indexer has not processed; for spans, the
    suffix of their pack.
    """
    return LSI1_TRACE.sk.build(trace_id, suffix)


def lsi1_trace_prefix() -> str:
    return LSI1_TRACE.sk.prefix()


def lsi2_trace(request_time: int, trace_id: str) -> str:
    return LSI2_TRACE.sk.build(request_time, trace_id)


def lsi2_trace_prefix() -> str:
    return LSI2_TRACE.sk.prefix()


def lsi2_trace_from(request_time: int) -> str:
    """Returns the lower bound of the LSI2 sort keys of traces that were requested at this time
    (milliseconds) or later."""
    return LSI2_TRACE.sk.prefix(request_time)


def lsi3_trace(status: str, request_time: int, trace_id: str) -> str:
    return LSI3_TRACE.sk.build(status, request_time, trace_id)


def lsi3_trace_from(status: str, request_time: int) -> str:
    return LSI3_TRACE.sk.prefix(status, request_time)


def lsi4_trace(trace_name: str, trace_id: str) -> str:
    return LSI4_TRACE.sk.build(trace_name, trace_id)


def lsi4_trace_prefix() -> str:
    return LSI4_TRACE.sk.prefix()


def lsi4_trace_name_prefix(trace_name: str) -> str:
    """Returns the prefix of the LSI4 sort keys of the traces with exactly this name."""
    return LSI4_TRACE.sk.prefix(trace_name)


def lsi4_trace_begin(text: str) -> str:
    """Returns the prefix of the LSI4 sort keys of all traces whose name begins with the text. A
    long text is shortened, so more traces may match."""
    return LSI4_TRACE.sk.prefix() + escape_ordered(text)[:_MAX_PREFIX]


def lsi5_trace(session: str, request_time: int, trace_id: str) -> str:
    return LSI5_TRACE.sk.build(session, request_time, trace_id)


def lsi5_trace_prefix(session: str) -> str:
    return LSI5_TRACE.sk.prefix(session)


def lsi5_trace_from(session: str, request_time: int) -> str:
    return LSI5_TRACE.sk.prefix(session, request_time)


def lsi3_model_version(stage: str, version: int) -> str:
    return LSI3_MODEL_VERSION.sk.build(stage, version)


def lsi3_model_version_prefix(stage: str) -> str:
    return LSI3_MODEL_VERSION.sk.prefix(stage)


def lsi1_logged_model(stage: str, creation_time: int, model_id: str) -> str:
    return LSI1_LOGGED_MODEL.sk.build(stage.upper(), creation_time, model_id)


def lsi1_logged_model_prefix(stage: str) -> str:
    return LSI1_LOGGED_MODEL.sk.prefix(stage.upper())


def lsi4_logged_model(name: str, creation_time: int, model_id: str) -> str:
    return LSI4_LOGGED_MODEL.sk.build(name, creation_time, model_id)


def lsi4_logged_model_prefix(name: str) -> str:
    """Returns the prefix of the LSI4 sort keys of the logged models with exactly this name."""
    return LSI4_LOGGED_MODEL.sk.prefix(name)


def lsi5_logged_model(run_id: str, creation_time: int, model_id: str) -> str:
    return LSI5_LOGGED_MODEL.sk.build(run_id, creation_time, model_id)


def lsi5_logged_model_prefix(run_id: str) -> str:
    return LSI5_LOGGED_MODEL.sk.prefix(run_id)


def gsi1_run(run_id: str, experiment_id: str) -> IndexKey:
    return IndexKey(GSI1_RUN.pk.build(run_id), GSI1_RUN.sk.build(experiment_id))


def gsi1_trace(trace_id: str, experiment_id: str) -> IndexKey:
    return IndexKey(GSI1_TRACE.pk.build(trace_id), GSI1_TRACE.sk.build(experiment_id))


def gsi2_experiment(workspace: str, experiment_id: str) -> IndexKey:
    return IndexKey(GSI2_EXPERIMENT.pk.build(workspace), GSI2_EXPERIMENT.sk.build(experiment_id))


def gsi2_fts(token: str, level: str, entity_type: str, entity_id: str) -> IndexKey:
    return IndexKey(GSI2_FTS.pk.build(token), GSI2_FTS.sk.build(level, entity_type, entity_id))


def gsi3_experiment(name: str, experiment_id: str) -> IndexKey:
    return IndexKey(GSI3_EXPERIMENT.pk.build(name), GSI3_EXPERIMENT.sk.build(experiment_id))


def gsi3_model(workspace: str, name: str) -> IndexKey:
    key_name = place_of_model(workspace, name)
    return IndexKey(GSI3_MODEL.pk.build(key_name), GSI3_MODEL.sk.build(key_name))


def gsi4_experiment_permission(experiment_id: str, username: str) -> IndexKey:
    pattern = GSI4_EXPERIMENT_PERMISSION
    return IndexKey(pattern.pk.build(experiment_id), pattern.sk.build(username))


def gsi4_model_permission(model_name: str, username: str) -> IndexKey:
    pattern = GSI4_MODEL_PERMISSION
    return IndexKey(pattern.pk.build(model_name), pattern.sk.build(username))


def gsi5_experiment_begin(workspace: str, text: str) -> IndexKey:
    """Returns the GSI5 partition key, and the prefix of the sort keys, of a workspace's experiments
    whose name begins with the text. A long text is shortened, so more experiments may match."""
    return IndexKey(GSI5_EXPERIMENT.pk.build(workspace), text[:_MAX_PREFIX])


def gsi5_experiment(workspace: str, name: str) -> IndexKey:
    return IndexKey(GSI5_EXPERIMENT.pk.build(workspace), GSI5_EXPERIMENT.sk.build(name))


def gsi5_model(workspace: str, name: str) -> IndexKey:
    """Returns the GSI5 key of a registered model: in the partition ``RM_LIST`` for the default
    workspace, ``RM_LIST#<workspace>`` for another."""
    return IndexKey(gsi5_model_pk(workspace), GSI5_MODEL.sk.build(name))


def gsi5_workspace_model(workspace: str, name: str) -> IndexKey:
    return IndexKey(GSI5_WORKSPACE_MODEL.pk.build(workspace), GSI5_MODEL.sk.build(name))


def gsi5_model_pk(workspace: str) -> str:
    if workspace == DEFAULT_WORKSPACE:
        return GSI5_MODEL.pk.text
    return gsi5_workspace_model(workspace, "").pk


def gsi5_model_range(prefix: str, start: str, *, descending: bool) -> tuple[str, str]:
    """Returns inclusive bounds of the GSI5 sort keys of the registered models whose name begins
    with ``prefix``. If ``start`` is not empty, the bounds begin at the name ``start`` (end at it if
    ``descending``)."""
    first = prefix[:_MAX_PREFIX]
    low, high = first or _FIRST, first + UPPER_BOUND
    if start:
        start_key = GSI5_MODEL.sk.build(start)
        low, high = (low, min(high, start_key)) if descending else (max(low, start_key), high)
    return low, max(low, high)
