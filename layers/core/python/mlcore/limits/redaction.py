"""Checks the setting ``redaction``: rules that replace sensitive texts before a trace is stored, or
before a model provider gets them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from mlcore.errors import InvalidParameterValue
from mlcore.limits.experiments import experiment_id
from mlcore.redaction import rules, setting
from mlcore.redaction.detectors import DETECTORS
from mlcore.redaction.fields import ANY_DEPTH, WILDCARDS, parse

MAX_BYTES: Final = 50_000
MAX_RULES: Final = 50
MAX_ENTRIES: Final = 100
"""Maximum number of fields, workspaces, experiments or endpoints of one rule."""
MAX_TEXT: Final = 250
"""Characters of a field, a replacement or a name."""
MAX_PATTERN: Final = 500
"""Characters of a regular expression."""
_MEMBERS: Final = {
    *setting.KINDS,
    setting.WORKSPACES,
    setting.EXPERIMENTS,
    setting.ENDPOINTS,
    setting.REPLACEMENT,
    setting.APPLY_TO,
    setting.UNSEARCHABLE,
}
_REQUEST: Final = "inputs"
"""The path of a request to a provider, which is also its path in the trace of the call."""


def check_redaction(value: Any) -> None:
    """Checks that the value of the setting ``redaction`` has the form ``{"rules": [rule, …]}``, and
    that no rule matches the replacement text of a rule. Raises InvalidParameterValue otherwise."""
    if not isinstance(value, dict) or value.keys() != {setting.RULES}:
        raise InvalidParameterValue(
            "The setting 'redaction' must be an object with the member 'rules' alone."
        )
    entries = value[setting.RULES]
    if not isinstance(entries, list) or len(entries) > MAX_RULES:
        raise InvalidParameterValue(
            f"'rules' of the setting 'redaction' must be a list of at most {MAX_RULES} rules."
        )
    if len(json.dumps(value, ensure_ascii=False).encode(errors="replace")) > MAX_BYTES:
        raise InvalidParameterValue(f"The setting 'redaction' can have at most {MAX_BYTES} bytes.")
    for number, entry in enumerate(entries, 1):
        try:
            _check_rule(entry)
        except InvalidParameterValue as error:
            raise InvalidParameterValue(
                f"Rule {number} of the setting 'redaction': {error.message}"
            ) from None
    _check_replacements(rules.parsed(value))


def _check_rule(rule: Any) -> None:
    if not isinstance(rule, dict) or not rule.keys() <= _MEMBERS:
        raise InvalidParameterValue(
            f"a rule must be an object with some of {', '.join(sorted(_MEMBERS))}."
        )
    if sum(kind in rule for kind in setting.KINDS) != 1:
        raise InvalidParameterValue(f"a rule must have exactly one of {', '.join(setting.KINDS)}.")
    for scope in (setting.WORKSPACES, setting.EXPERIMENTS, setting.ENDPOINTS):
        if scope in rule:
            _check_texts(scope, rule[scope])
    for text in rule.get(setting.EXPERIMENTS, ()):
        if experiment_id(text) != text:
            raise InvalidParameterValue(
                f"the experiment {text!r} is written as {experiment_id(text)!r}."
            )
    if setting.REPLACEMENT in rule and not _is_text(rule[setting.REPLACEMENT]):
        raise InvalidParameterValue(
            f"'replacement' must be a printable text of 1 to {MAX_TEXT} characters."
        )
    _check_targets(rule)
    if setting.FIELDS in rule:
        _check_fields(rule)
    elif setting.ENTITIES in rule:
        _check_entities(rule)
    elif setting.CONTENT in rule:
        if rule[setting.CONTENT] != setting.NO_CONTENT or setting.REPLACEMENT in rule:
            raise InvalidParameterValue("'content' must be 'none', without a replacement.")
    else:
        _check_pattern(rule[setting.PATTERN])


def _check_targets(rule: Mapping[str, Any]) -> None:
    """Checks the members ``apply_to`` and ``unsearchable`` of a rule. Raises
    InvalidParameterValue."""
    targets = rule.get(setting.APPLY_TO, [setting.TRACES])
    if (
        not isinstance(targets, list)
        or not targets
        or not all(target in setting.TARGETS for target in targets)
    ):
        raise InvalidParameterValue(
            f"'apply_to' must be a list of some of {', '.join(setting.TARGETS)}."
        )
    if setting.PROVIDERS in targets and setting.CONTENT in rule:
        raise InvalidParameterValue(
            "'content' applies to traces alone: a provider needs the content of a request."
        )
    if setting.UNSEARCHABLE not in rule:
        return
    if rule[setting.UNSEARCHABLE] not in setting.UNSEARCHABLES:
        raise InvalidParameterValue(
            f"'unsearchable' must be one of {', '.join(setting.UNSEARCHABLES)}."
        )
    if setting.PROVIDERS not in targets or setting.FIELDS in rule:
        raise InvalidParameterValue(
            "'unsearchable' is for rules with 'entities' or 'pattern' that apply to providers."
        )


def _check_fields(rule: Mapping[str, Any]) -> None:
    _check_texts(setting.FIELDS, rule[setting.FIELDS])
    for field in rule[setting.FIELDS]:
        segments = field.split(".")
        if not all(segments) or segments.count(ANY_DEPTH) > 1:
            raise InvalidParameterValue(
                f"the field {field!r} is no path: segments are separated by single dots, and at "
                "most one of them is '**'."
            )
        if setting.PROVIDERS in rule.get(setting.APPLY_TO, ()) and not _is_in_request(field):
            raise InvalidParameterValue(
                f"the field {field!r} names no part of a request to a provider. Such fields begin "
                f"with '{_REQUEST}', '*' or '**', and have at least two segments."
            )


def _is_in_request(field: str) -> bool:
    """Whether a field may name a part of a request, but not the request itself."""
    parsed = parse(field, setting.REFUSE)
    return (
        "." in field
        and parsed.first_segment in (_REQUEST, *WILDCARDS)
        and parsed.expression.fullmatch(_REQUEST) is None
    )


def _check_entities(rule: Mapping[str, Any]) -> None:
    _check_texts(setting.ENTITIES, rule[setting.ENTITIES])
    for kind in rule[setting.ENTITIES]:
        if kind not in DETECTORS:
            raise InvalidParameterValue(
                f"there is no entity {kind!r}. Entities are: {', '.join(DETECTORS)}."
            )


def _check_pattern(pattern: Any) -> None:
    if not isinstance(pattern, str) or not 0 < len(pattern) <= MAX_PATTERN:
        raise InvalidParameterValue(
            f"'pattern' must be a regular expression of 1 to {MAX_PATTERN} characters."
        )
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise InvalidParameterValue(f"'pattern' is no regular expression: {error}.") from None
    rules.parsed({setting.RULES: [{setting.PATTERN: pattern}]})


def _check_texts(name: str, texts: Any) -> None:
    if (
        not isinstance(texts, list)
        or not 0 < len(texts) <= MAX_ENTRIES
        or not all(map(_is_text, texts))
    ):
        raise InvalidParameterValue(
            f"{name!r} must be a list of 1 to {MAX_ENTRIES} texts of 1 to {MAX_TEXT} characters."
        )


def _is_text(text: Any) -> bool:
    return isinstance(text, str) and 0 < len(text) <= MAX_TEXT and text.isprintable()


def _check_replacements(parsed: rules.Rules) -> None:
    """Checks that no rule matches a replacement: redacting a text twice would change it again."""
    everywhere = parsed._replace(
        rules=tuple(rule._replace(apply_to=frozenset(setting.TARGETS)) for rule in parsed.rules)
    ).everywhere()
    replacements = {
        new
        for rule in parsed.rules
        for new in (
            *(field.replacement for field in rule.fields),
            *(replacer.replacement for replacer in rule.replacers),
        )
    }
    for new in sorted(replacements):
        if everywhere is not None and everywhere.matches(new):
            raise InvalidParameterValue(
                f"A rule of the setting 'redaction' matches the replacement {new!r}. Choose "
                "another replacement or a narrower pattern."
            )
