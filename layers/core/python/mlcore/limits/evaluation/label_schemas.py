"""Rules about label schemas: names, and the kinds of input that reviewers enter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mlcore.entities.evaluation.label_schemas import DEFAULT_NAME, INPUTS, Input
from mlcore.errors import InvalidParameterValue

MAX_NAME_LENGTH: Final = 250
MAX_INSTRUCTION_LENGTH: Final = 1000
MAX_LABEL_LENGTH: Final = 64
MAX_OPTIONS: Final = 10


def check_name(name: str) -> None:
    if len(name) > MAX_NAME_LENGTH:
        raise InvalidParameterValue(
            f"Label schema `name` must be at most {MAX_NAME_LENGTH} characters; got {len(name)}."
        )
    if not name:
        raise InvalidParameterValue(
            f"Label schema `name` must be a non-empty string; got {name!r}."
        )
    if name.strip().lower() == DEFAULT_NAME.lower():
        raise InvalidParameterValue(
            f"`{name}` is reserved for the experiment's default question and cannot be used "
            "for another label schema."
        )


def check_instruction(instruction: str | None) -> None:
    if instruction is not None and len(instruction) > MAX_INSTRUCTION_LENGTH:
        raise InvalidParameterValue(
            f"Label schema `instruction` must be at most {MAX_INSTRUCTION_LENGTH} characters; "
            f"got {len(instruction)}."
        )


def check_input(question: Input) -> None:
    for kind, fields in question.items():
        _CHECKS[kind](fields)


def check_same_kind(before: Input, after: Input) -> None:
    """Checks that an update of a label schema keeps the kind of input, and single or multiple
    choice, so that answers that were already collected stay valid. Raises InvalidParameterValue
    otherwise."""
    (old_kind,), (new_kind,) = before, after
    if old_kind != new_kind:
        raise InvalidParameterValue(
            "A label schema's input type cannot be changed after creation "
            f"(existing: {INPUTS[old_kind]}, got: {INPUTS[new_kind]})."
        )
    if (
        old_kind == "categorical"
        and before[old_kind]["multi_select"] != after[new_kind]["multi_select"]
    ):
        raise InvalidParameterValue(
            "`InputCategorical.multi_select` cannot be changed after creation."
        )


def _check_pass_fail(fields: dict[str, Any]) -> None:
    for name in ("positive_label", "negative_label"):
        label = fields[name]
        if not label:
            raise InvalidParameterValue(
                f"`InputPassFail.{name}` must be a non-empty string; got {label!r}."
            )
        if len(label) > MAX_LABEL_LENGTH:
            raise InvalidParameterValue(
                f"`InputPassFail.{name}` must be at most {MAX_LABEL_LENGTH} "
                f"characters; got {len(label)}."
            )
    if fields["positive_label"] == fields["negative_label"]:
        raise InvalidParameterValue(
            "`InputPassFail.positive_label` and `negative_label` must be distinct; "
            f"got {fields['positive_label']!r} for both."
        )


def _check_categorical(fields: dict[str, Any]) -> None:
    options: list[str] = fields["options"]
    if not options:
        raise InvalidParameterValue(
            f"`InputCategorical.options` must be a non-empty list; got {options!r}."
        )
    if len(options) > MAX_OPTIONS:
        raise InvalidParameterValue(
            f"`InputCategorical.options` must have at most {MAX_OPTIONS} "
            f"entries; got {len(options)}."
        )
    seen: set[str] = set()
    for option in options:
        if not option:
            raise InvalidParameterValue(
                f"`InputCategorical.options` entries must be non-empty strings; got {option!r}."
            )
        if len(option) > MAX_LABEL_LENGTH:
            raise InvalidParameterValue(
                f"`InputCategorical.options` entries must be at most "
                f"{MAX_LABEL_LENGTH} characters; got {len(option)} for {option!r}."
            )
        if option in seen:
            raise InvalidParameterValue(
                f"`InputCategorical.options` must be deduplicated; {option!r} appears twice."
            )
        seen.add(option)


def _check_numeric(fields: dict[str, Any]) -> None:
    low, high = fields.get("min_value"), fields.get("max_value")
    if low is not None and high is not None and low >= high:
        raise InvalidParameterValue(
            f"`InputNumeric.min_value` must be strictly less than `max_value`; "
            f"got min={low}, max={high}."
        )


def _check_text(fields: dict[str, Any]) -> None:
    max_length = fields.get("max_length")
    if max_length is not None and max_length < 1:
        raise InvalidParameterValue(f"`InputText.max_length` must be at least 1; got {max_length}.")


_CHECKS: Final[dict[str, Callable[[dict[str, Any]], None]]] = {
    "pass_fail": _check_pass_fail,
    "categorical": _check_categorical,
    "numeric": _check_numeric,
    "text": _check_text,
}
