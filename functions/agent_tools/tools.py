"""The tools of this product's MCP server. Each calls the API with the login of the agent's user,
so it reads what this user may read and nothing else. No tool changes data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from mlcore import reserved_tags
from mlcore.errors import InvalidParameterValue
from mlcore.http.api_client import ApiClient

Json = dict[str, Any]

_MLFLOW: Final = "/2.0/mlflow"
_TEXT: Final = {"type": "string"}
_TEXTS: Final = {"type": "array", "items": {"type": "string"}}
_PAGE_TOKEN: Final = {"type": "string", "description": "next_page_token of the page before"}
_PYTHON_TYPES: Final[Mapping[str, type[Any]]] = {
    "string": str,
    "integer": int,
    "array": list,
    "object": dict,
}
_IS_PROMPT: Final = f"tags.`{reserved_tags.IS_PROMPT}` = 'true'"


class Tool(NamedTuple):
    """A tool of this deployment's own MCP server, with the JSON Schema of the tool's arguments."""

    name: str
    description: str
    properties: Mapping[str, Json]
    required: tuple[str, ...]
    call: Callable[[ApiClient, Json], Json]
    """Takes the client and the checked arguments. Raises the error that the API returned, or
    InvalidParameterValue."""

    def declaration(self) -> Json:
        """Returns the tool's entry in the response to ``tools/list``."""
        return {
            "name": self.name,
            "description": self.description,
            "inputSchema": {
                "type": "object",
                "properties": dict(self.properties),
                "required": list(self.required),
                "additionalProperties": False,
            },
            "annotations": {"readOnlyHint": True, "openWorldHint": False},
        }

    def checked(self, arguments: Any) -> Json:
        """Returns the arguments of a call of this tool of the MCP server, without nulls and with
        the defaults of the schema. Raises InvalidParameterValue if they do not fit the schema."""
        if not isinstance(arguments, dict):
            raise InvalidParameterValue("The arguments of a tool must be an object.")
        given = {name: value for name, value in arguments.items() if value is not None}
        for name in given.keys() - self.properties.keys():
            raise InvalidParameterValue(f"The tool {self.name} has no argument {name[:100]!r}.")
        for name in self.required:
            if name not in given:
                raise InvalidParameterValue(f"The tool {self.name} needs the argument {name!r}.")
        for name, value in given.items():
            _check(name, value, self.properties[name])
        defaults = {
            name: schema["default"]
            for name, schema in self.properties.items()
            if "default" in schema
        }
        return {**defaults, **given}


def _check(name: str, value: Any, schema: Json) -> None:
    kind = schema["type"]
    if not isinstance(value, _PYTHON_TYPES[kind]) or isinstance(value, bool):
        raise InvalidParameterValue(f"The argument {name!r} must be of type {kind}.")
    if isinstance(value, list) and not all(isinstance(item, str) for item in value):
        raise InvalidParameterValue(f"The argument {name!r} must hold strings.")
    if kind == "integer" and not schema["minimum"] <= value <= schema["maximum"]:
        raise InvalidParameterValue(
            f"The argument {name!r} must be from {schema['minimum']} to {schema['maximum']}."
        )


def _max_results(default: int, maximum: int) -> Json:
    return {"type": "integer", "minimum": 1, "maximum": maximum, "default": default}


def _filter(example: str) -> Json:
    return {"type": "string", "description": f"MLflow's filter language, such as: {example}"}


def _posted(path: str) -> Callable[[ApiClient, Json], Json]:
    return lambda client, arguments: client.post(path, **arguments)


def _got(path: str) -> Callable[[ApiClient, Json], Json]:
    return lambda client, arguments: client.get(path, **arguments)


def _search_traces(client: ApiClient, arguments: Json) -> Json:
    experiments = [
        {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": experiment_id}}
        for experiment_id in arguments.pop("experiment_ids")
    ]
    return client.post("/3.0/mlflow/traces/search", locations=experiments, **arguments)


def _search_prompts(client: ApiClient, arguments: Json) -> Json:
    wanted = arguments.pop("filter", "").strip()
    condition = f"{_IS_PROMPT} AND {wanted}" if wanted else _IS_PROMPT
    return client.get(f"{_MLFLOW}/registered-models/search", filter=condition, **arguments)


def _get_prompt(client: ApiClient, arguments: Json) -> Json:
    """Returns a version of a prompt with its template. Raises InvalidParameterValue if the
    arguments do not name exactly one of version and alias, or if the version has no template
    because it is that of a registered model; else the error that the API returned."""
    version, alias = arguments.get("version"), arguments.get("alias")
    if (version is None) == (alias is None):
        raise InvalidParameterValue("Name either the version or the alias of the prompt.")
    path, key = (
        ("model-versions/get", {"version": version})
        if alias is None
        else ("registered-models/alias", {"alias": alias})
    )
    version_fields = client.get(f"{_MLFLOW}/{path}", name=arguments["name"], **key)["model_version"]
    tags = {tag["key"]: tag["value"] for tag in version_fields.get("tags", ())}
    if reserved_tags.PROMPT_TEXT not in tags:
        raise InvalidParameterValue(f"{arguments['name']!r} is a model and not a prompt.")
    template = tags.pop(reserved_tags.PROMPT_TEXT)
    fields = ("name", "version", "description", "aliases", "creation_timestamp")
    known = {field: version_fields[field] for field in fields if field in version_fields}
    return {**known, "template": template, "tags": tags}


_SEARCH: Final[Mapping[str, Json]] = {"order_by": _TEXTS, "page_token": _PAGE_TOKEN}

_DECLARED: Final = (
    Tool(
        "search_experiments",
        "Lists experiments with their ids, names and tags.",
        {"filter": _filter("name LIKE 'fraud%'"), "max_results": _max_results(50, 1000), **_SEARCH},
        (),
        _posted(f"{_MLFLOW}/experiments/search"),
    ),
    Tool(
        "search_runs",
        "Lists runs of experiments with their last metrics, params and tags.",
        {
            "experiment_ids": _TEXTS,
            "filter": _filter("metrics.loss < 0.1 AND params.model = 'cnn'"),
            "max_results": _max_results(20, 1000),
            **_SEARCH,
        },
        ("experiment_ids",),
        _posted(f"{_MLFLOW}/runs/search"),
    ),
    Tool(
        "get_run",
        "Returns one run: status, times, last metrics, params, tags.",
        {"run_id": _TEXT},
        ("run_id",),
        _got(f"{_MLFLOW}/runs/get"),
    ),
    Tool(
        "get_metric_history",
        "Returns the logged points of one metric of a run: value, step, timestamp in ms.",
        {
            "run_id": _TEXT,
            "metric_key": _TEXT,
            "max_results": _max_results(1000, 5000),
            "page_token": _PAGE_TOKEN,
        },
        ("run_id", "metric_key"),
        _got(f"{_MLFLOW}/metrics/get-history"),
    ),
    Tool(
        "search_traces",
        "Lists traces of experiments without their spans: state, duration, previews, assessments.",
        {
            "experiment_ids": _TEXTS,
            "filter": _filter("trace.status = 'ERROR'"),
            "max_results": _max_results(20, 500),
            **_SEARCH,
        },
        ("experiment_ids",),
        _search_traces,
    ),
    Tool(
        "get_trace",
        "Returns one trace with its spans.",
        {"trace_id": _TEXT},
        ("trace_id",),
        _got("/3.0/mlflow/traces/get"),
    ),
    Tool(
        "search_models",
        "Lists registered models with their latest versions and aliases.",
        {"filter": _filter("name LIKE 'churn%'"), "max_results": _max_results(50, 1000), **_SEARCH},
        (),
        _got(f"{_MLFLOW}/registered-models/search"),
    ),
    Tool(
        "search_model_versions",
        "Lists versions of registered models: source, run, status, tags.",
        {"filter": _filter("name = 'churn'"), "max_results": _max_results(50, 1000), **_SEARCH},
        (),
        _got(f"{_MLFLOW}/model-versions/search"),
    ),
    Tool(
        "search_prompts",
        "Lists prompts of the prompt registry.",
        {
            "filter": _filter("name LIKE 'answer%'"),
            "max_results": _max_results(50, 1000),
            **_SEARCH,
        },
        (),
        _search_prompts,
    ),
    Tool(
        "get_prompt",
        "Returns a version of a prompt with its template, by version number or by alias.",
        {"name": _TEXT, "version": _TEXT, "alias": _TEXT},
        ("name",),
        _get_prompt,
    ),
    Tool(
        "query_system_tables",
        "Runs one SELECT in Databricks' SQL over the tables of system.mlflow: runs_latest, "
        "run_metrics_history and experiments_latest; traces, spans, assessments and "
        "trace_unified; gateway_usage; registered_models and model_versions; "
        "evaluation_datasets and others. SHOW TABLES lists them, DESCRIBE their columns. "
        "Rows may be two minutes old.",
        {
            "sql": _TEXT,
            "parameters": {"type": "object", "description": "values of :name in the statement"},
        },
        ("sql",),
        _posted("/3.0/mlflow-serverless/sql"),
    ),
)

TOOLS: Final[Mapping[str, Tool]] = {tool.name: tool for tool in _DECLARED}
"""The tools by name, in the order in which they are listed."""
