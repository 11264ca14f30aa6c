"""Rules about what the prompt lab of the UI sends to make a run: create-promptlab-run, which is no
protobuf RPC in MLflow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol

from mlcore.entities.runs import Param
from mlcore.errors import InvalidParameterValue
from mlcore.wire import invalid_value
from mlcore.wire.checks import SEE_DOCS
from mlcore.wire.scalars import Stop, string

SOURCE_TYPE_TAG: Final = "mlflow.runSourceType"
SOURCE_TYPE: Final = "PROMPT_ENGINEERING"
LOGGED_ARTIFACTS_TAG: Final = "mlflow.loggedArtifacts"
UNKNOWN_USER: Final = "unknown"
REQUIRED: Final = (
    *("experiment_id", "prompt_template", "prompt_parameters", "model_route", "model_input"),
    "mlflow_version",
)


class Parameter(Protocol):
    """A parameter as a request has it; its value may be of any type."""

    key: str
    value: Any


class Fields(Protocol):
    """A request. What may be of any type is None where it was not sent."""

    experiment_id: Any
    prompt_template: str
    model_route: str
    model_input: Any
    model_output: Any
    mlflow_version: Any

    @property
    def prompt_parameters(self) -> Sequence[Parameter]: ...

    @property
    def model_parameters(self) -> Sequence[Parameter]: ...

    @property
    def model_output_parameters(self) -> Sequence[Parameter]: ...


class Prompt(NamedTuple):
    """A prompt that was tried: with what, on which model, and what came of it."""

    template: str
    parameters: Sequence[Param]
    model_route: str
    model_parameters: Sequence[Param]
    model_input: Any
    """JSON, as it was sent; so is the output, which may be None."""
    model_output: Any
    output_parameters: Sequence[Param]

    def logged(self) -> list[Param]:
        """The params of its run."""
        return [
            *self.model_parameters,
            Param("model_route", self.model_route),
            Param("prompt_template", self.template),
        ]


def experiment_of(fields: Any) -> str:
    """The id of the experiment that a request names. Raises InvalidParameterValue: it names
    none."""
    _check_given(fields, "experiment_id")
    given = fields.experiment_id
    return str(given) if isinstance(given, int) else _text("experiment_id", given)


def prompt_of(fields: Fields) -> Prompt:
    """The prompt of a request.

    Raises:
        InvalidParameterValue: something is missing or empty, the first in MLflow's order; or a
            value cannot be kept, where MLflow's server answers 500.
    """
    for name in REQUIRED:
        _check_given(fields, name)
    return Prompt(
        fields.prompt_template,
        _params("prompt_parameters", fields.prompt_parameters),
        fields.model_route,
        _params("model_parameters", fields.model_parameters),
        fields.model_input,
        fields.model_output,
        _params("model_output_parameters", fields.model_output_parameters),
    )


def _check_given(fields: Any, name: str) -> None:
    if not getattr(fields, name):
        raise InvalidParameterValue(f"CreatePromptlabRun request must specify {name}.")


def _params(name: str, parameters: Sequence[Parameter]) -> list[Param]:
    """Values become what Python calls them, such as ``True`` and ``None``."""
    return [
        Param(one.key, _text(f"{name}[{position}].value", str(one.value)))
        for position, one in enumerate(parameters)
    ]


def _text(name: str, value: Any) -> str:
    try:
        return string(value)
    except Stop:
        hint = f" Hint: Value was of type '{type(value).__name__}'."
        raise InvalidParameterValue(invalid_value(name, value, hint) + SEE_DOCS) from None
