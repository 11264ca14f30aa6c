"""Rules about the request create-promptlab-run, with which the UI's prompt lab creates a run from a
prompt that was tried. In MLflow it is not a protobuf RPC.
"""

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


class ParameterFields(Protocol):
    """A parameter of a prompt, of a model or of a model's output, as a request of the prompt lab
    holds it; its value may have any JSON type."""

    key: str
    value: Any


class PromptlabRequest(Protocol):
    """The fields of a create-promptlab-run request. Fields of the type Any are None if they were
    not sent."""

    experiment_id: Any
    prompt_template: str
    model_route: str
    model_input: Any
    model_output: Any
    mlflow_version: Any

    @property
    def prompt_parameters(self) -> Sequence[ParameterFields]: ...

    @property
    def model_parameters(self) -> Sequence[ParameterFields]: ...

    @property
    def model_output_parameters(self) -> Sequence[ParameterFields]: ...


class Prompt(NamedTuple):
    """A prompt that a user tried in the UI's prompt lab, with parameters, model, input, output."""

    template: str
    parameters: Sequence[Param]
    model_route: str
    model_parameters: Sequence[Param]
    model_input: Any
    """JSON value as it was sent."""
    model_output: Any
    """JSON value as it was sent; None if it was not."""
    output_parameters: Sequence[Param]

    def logged(self) -> list[Param]:
        """The params of the run that the prompt lab creates from this prompt."""
        return [
            *self.model_parameters,
            Param("model_route", self.model_route),
            Param("prompt_template", self.template),
        ]


def experiment_of(fields: Any) -> str:
    """Returns the id of the experiment that a request names. Raises InvalidParameterValue if it is
    missing or not a text or number."""
    _check_given(fields, "experiment_id")
    given = fields.experiment_id
    return str(given) if isinstance(given, int) else _text("experiment_id", given)


def prompt_of(fields: PromptlabRequest) -> Prompt:
    """Returns the prompt that a create-promptlab-run request holds.

    Raises:
        InvalidParameterValue: a field is missing or empty, reported in MLflow's order; or a value
            cannot be stored, where MLflow's server answers 500.
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


def _params(name: str, parameters: Sequence[ParameterFields]) -> list[Param]:
    """Returns parameters of a request as params. Values are converted by Python's ``str``, e.g. to
    ``True`` and ``None``."""
    return [
        Param(parameter.key, _text(f"{name}[{position}].value", str(parameter.value)))
        for position, parameter in enumerate(parameters)
    ]


def _text(name: str, value: Any) -> str:
    try:
        return string(value)
    except Stop:
        hint = f" Hint: Value was of type '{type(value).__name__}'."
        raise InvalidParameterValue(invalid_value(name, value, hint) + SEE_DOCS) from None
