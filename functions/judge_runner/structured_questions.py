"""Asks the model of a job's gateway endpoint questions that it answers with a JSON object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from judge_runner.call_journal import CallJournal
from mlcore import errors
from mlcore.entities.evaluation.jobs import Job
from mlcore.judges.judge_model import JudgeModel
from mlcore.judges.verdicts import text_of, without_fences
from mlcore.wire.json_text import load_json

T = TypeVar("T")

_CORRECTION = """\
This answer does not have the requested form: {reason}. Answer again, with the JSON object alone."""


class StructuredQuestions:
    """Asks a model questions through the gateway, for a background job and in the name of the user
    who submitted it. A job that continues after an interruption does not repeat questions whose
    answers are stored (see :mod:`judge_runner.call_journal`)."""

    def __init__(
        self,
        job: Job,
        endpoint_name: str,
        journal: CallJournal,
        parameters: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """
        Args:
            parameters: further fields of each chat, such as ``temperature``.
        """
        self._parameters = parameters
        self._model = JudgeModel(job.workspace, endpoint_name, job.creator, journal.complete)

    def ask(
        self,
        instructions: str,
        material: str,
        schema: Mapping[str, Any],
        parse: Callable[[dict[str, Any]], T],
    ) -> T:
        """Asks a question and returns the parsed answer. An answer that is no JSON object, or that
        ``parse`` refuses, is asked for once more.

        Args:
            instructions: the content of the system message.
            material: the content of the user message.
            schema: a JSON schema of the answer, strict as OpenAI requires.
            parse: converts the answer; raises ValueError with the reason if the answer does not
                fit.

        Raises:
            BadRequest: the model did not answer in the requested form.
            MlflowError: the model could not be called.
            OutOfTime, JobStopped: see :meth:`JobExecution.check`.
        """
        messages = [
            {"role": "system", "content": instructions},
            {"role": "user", "content": material},
        ]
        text = self._completed(messages, schema)
        try:
            return parse(_json_object(text))
        except ValueError as error:
            correction = _CORRECTION.format(reason=error)
        messages += [
            {"role": "assistant", "content": text or "{}"},
            {"role": "user", "content": correction},
        ]
        text = self._completed(messages, schema)
        try:
            return parse(_json_object(text))
        except ValueError as error:
            raise errors.BadRequest(
                f"The model did not answer in the requested form: {error}."
            ) from error

    def _completed(self, messages: list[dict[str, str]], schema: Mapping[str, Any]) -> str:
        chat = {
            **self._parameters,
            "messages": list(messages),
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": dict(schema), "strict": True},
            },
        }
        return text_of(self._model.ask(chat))


def object_schema(**properties: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a strict JSON schema of an object with exactly these properties."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def texts(answer: Mapping[str, Any], name: str) -> list[str]:
    """Returns the strings in the list ``answer[name]`` of a model's answer; [] if it is not a
    list."""
    values = answer.get(name)
    return [each for each in values if isinstance(each, str)] if isinstance(values, list) else []


def objects(answer: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Returns the objects in the list ``answer[name]`` of a model's answer. Raises ValueError if it
    is not a list."""
    values = answer.get(name)
    if not isinstance(values, list):
        raise ValueError(f"{name} is not a list")
    return [each for each in values if isinstance(each, dict)]


def indexes(answer: Mapping[str, Any], name: str, count: int) -> list[int]:
    """Returns the distinct integers from 0 to ``count`` - 1 in the list ``answer[name]`` of a judge
    model's JSON answer; leaves out anything else."""
    values = answer.get(name)
    numbers = values if isinstance(values, list) else []
    return [
        number
        for number in dict.fromkeys(each for each in numbers if type(each) is int)
        if 0 <= number < count
    ]


def _json_object(text: str) -> dict[str, Any]:
    """Returns the JSON object in a model's text. Raises ValueError."""
    try:
        data = load_json(without_fences(text), strict=False)
    except ValueError:
        raise ValueError("it is not JSON") from None
    if not isinstance(data, dict):
        raise ValueError("it is not a JSON object")
    return data
