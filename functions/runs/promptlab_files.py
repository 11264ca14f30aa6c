"""Builds the files of a prompt lab run as MLflow's server writes them: a table with one evaluation,
and a model that MLflow's clients can load."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from mlcore.entities.runs import Param
from mlcore.limits.promptlab import Prompt
from mlcore.mlflow_version import MLFLOW_VERSION
from runs.yaml_writing import Plain, dump

TABLE: Final = "eval_results_table.json"
MODEL: Final = "model"
_REQUIREMENT: Final = f"mlflow[gateway]=={MLFLOW_VERSION}"


def files_of(prompt: Prompt, model_info: Mapping[str, Any]) -> dict[str, bytes]:
    """Returns the content of each file of a prompt lab run by its path.

    Args:
        model_info: the model's ``run_id``, ``model_uuid`` and ``utc_time_created``.
    """
    example = {"inputs": [param.value for param in prompt.parameters]}
    model = {
        "MLmodel": dump(_model(prompt, model_info)),
        "conda.yaml": dump(_conda()),
        "input_example.json": json.dumps(example),
        "parameters.yaml": dump(_parameters(prompt)),
        "python_env.yaml": dump(_python_environment()),
        "requirements.txt": _REQUIREMENT,
        "serving_input_example.json": json.dumps({"inputs": example}, indent=2),
    }
    texts = {TABLE: _table(prompt), **{f"{MODEL}/{name}": model[name] for name in model}}
    return {path: text.encode() for path, text in texts.items()}


def _table(prompt: Prompt) -> str:
    results = prompt.output_parameters
    columns = [*_keys(prompt.parameters), "prompt", "output", *_keys(results)]
    row = [
        *(param.value for param in prompt.parameters),
        *(prompt.model_input, prompt.model_output),
        *(param.value for param in results),
    ]
    return json.dumps({"columns": columns, "data": [row]})


def _model(prompt: Prompt, model_info: Mapping[str, Any]) -> Plain:
    return {
        "artifact_path": MODEL,
        "flavors": {
            "python_function": {
                "env": {"conda": "conda.yaml", "virtualenv": "python_env.yaml"},
                "loader_module": "mlflow.prompt.promptlab_model",
                "parameters_path": "parameters.yaml",
                "python_version": _python(),
            }
        },
        "is_signature_from_type_hint": False,
        "mlflow_version": MLFLOW_VERSION,
        "model_id": None,
        "model_uuid": str(model_info["model_uuid"]),
        "prompts": None,
        "run_id": str(model_info["run_id"]),
        "saved_input_example_info": {
            "artifact_path": "input_example.json",
            "serving_input_path": "serving_input_example.json",
            "type": "json_object",
        },
        "signature": {
            "inputs": _schema(_keys(prompt.parameters)),
            "outputs": _schema(["output"]),
            "params": None,
        },
        "type_hint_from_example": False,
        "utc_time_created": str(model_info["utc_time_created"]),
    }


def _schema(names: Sequence[str]) -> str:
    return json.dumps([{"type": "string", "name": name, "required": True} for name in names])


def _parameters(prompt: Prompt) -> Plain:
    return {
        "model_parameters": {param.key: param.value for param in prompt.model_parameters},
        "model_route": prompt.model_route,
        "prompt_parameters": {param.key: param.value for param in prompt.parameters},
        "prompt_template": prompt.template,
    }


def _conda() -> Plain:
    """Returns the content of the file ``conda.yaml``. It names no version of pip, because this
    server has no pip. MLflow omits the version, too, if pip is not installed."""
    return {
        "channels": ["conda-forge"],
        "dependencies": [f"python={_python()}", "pip", {"pip": [_REQUIREMENT]}],
        "name": "mlflow-env",
    }


def _python_environment() -> Plain:
    return {
        "python": _python(),
        "build_dependencies": ["pip", "setuptools", "wheel"],
        "dependencies": ["-r requirements.txt"],
    }


def _python() -> str:
    """Returns the version of this server's Python, such as ``3.13.1``."""
    return ".".join(map(str, sys.version_info[:3]))


def _keys(params: Sequence[Param]) -> list[str]:
    return [param.key for param in params]
