"""Checks the settings of the built-in scorers that ask no model, as MLflow's classes do. Limits the
regular expressions of ``RegexMatch`` in addition."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from mlcore.entities.evaluation.judges import LENGTH_RULE, PII_KINDS, PII_RULE, REGEX_RULE
from mlcore.errors import InvalidParameterValue
from mlcore.search import rlike

MAX_PATTERN: Final = 2_000
"""Characters of a regular expression."""
MAX_REPETITIONS: Final = 10_000
"""The product of an expression's counts; bounds the memory of the compiled expression."""
_MATCH_TYPES: Final = ("search", "fullmatch")
_UNITS: Final = ("chars", "words")


def check_settings(scorer_class: str, settings: Mapping[str, Any]) -> None:
    """Raises InvalidParameterValue if the settings of a rule scorer (one that asks no model) do not
    suit the scorer's class, such as ``RegexMatch``."""
    _CHECKS[scorer_class](settings)


def _check_expression(settings: Mapping[str, Any]) -> None:
    pattern = settings.get("pattern")
    if not isinstance(pattern, str):
        raise InvalidParameterValue("RegexMatch requires `pattern`: a string.")
    if len(pattern) > MAX_PATTERN:
        raise InvalidParameterValue(f"`pattern` has more than {MAX_PATTERN} characters.")
    _check_one_of(settings, "match_type", _MATCH_TYPES)
    if not isinstance(settings.get("case_insensitive", False), bool):
        raise InvalidParameterValue("`case_insensitive` must be a boolean.")
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise InvalidParameterValue(f"invalid regex pattern {pattern!r}: {error}") from None
    rlike.compiled(pattern, MAX_REPETITIONS)


def _check_kinds(settings: Mapping[str, Any]) -> None:
    kinds = settings.get("pii_types")
    if kinds is None:
        return
    if not isinstance(kinds, list) or not all(kind in PII_KINDS for kind in kinds):
        raise InvalidParameterValue(f"`pii_types` must be a list of {', '.join(PII_KINDS)}.")


def _check_bounds(settings: Mapping[str, Any]) -> None:
    bounds = {name: settings.get(name) for name in ("min_length", "max_length")}
    if all(bound is None for bound in bounds.values()):
        raise InvalidParameterValue(
            "ResponseLength requires at least one of `min_length` or `max_length`."
        )
    for name, bound in bounds.items():
        if bound is None:
            continue
        if isinstance(bound, bool) or not isinstance(bound, int):
            raise InvalidParameterValue(f"`{name}` must be a whole number.")
        if bound < 0:
            raise InvalidParameterValue(f"`{name}` must be non-negative, got {bound}.")
    least, most = bounds.values()
    if least is not None and most is not None and least > most:
        raise InvalidParameterValue(f"`min_length` ({least}) must be <= `max_length` ({most}).")
    _check_one_of(settings, "unit", _UNITS)


def _check_one_of(settings: Mapping[str, Any], name: str, allowed: tuple[str, ...]) -> None:
    if name in settings and settings[name] not in allowed:
        raise InvalidParameterValue(f"`{name}` must be one of {', '.join(allowed)}.")


_CHECKS: Final = {
    REGEX_RULE: _check_expression,
    PII_RULE: _check_kinds,
    LENGTH_RULE: _check_bounds,
}
