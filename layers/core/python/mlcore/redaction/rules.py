"""The rules of the setting ``redaction``, compiled, and the choice of those that apply to an
experiment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from mlcore.redaction import fields
from mlcore.redaction.fields import RedactedField
from mlcore.redaction.redactor import REQUEST_SECONDS, Redactor
from mlcore.redaction.replacers import DEFAULT_REPLACEMENT, Replacer, of_entity, of_pattern
from mlcore.redaction.setting import (
    APPLY_TO,
    CONTENT,
    ENDPOINTS,
    ENTITIES,
    EXPERIMENTS,
    FIELDS,
    KINDS,
    NO_CONTENT,
    PATTERN,
    PROVIDERS,
    REPLACEMENT,
    RULES,
    SEND,
    TARGETS,
    TRACES,
    UNSEARCHABLE,
    UNSEARCHABLES,
    WORKSPACES,
)

_MEMBERS: Final = frozenset(
    (*KINDS, APPLY_TO, ENDPOINTS, EXPERIMENTS, REPLACEMENT, UNSEARCHABLE, WORKSPACES)
)


class Rule(NamedTuple):
    """A compiled redaction rule. It applies to a trace or request that is in all of its scopes
    (workspaces, experiments, endpoints); a scope of None contains all."""

    workspaces: frozenset[str] | None
    experiments: frozenset[str] | None
    endpoints: frozenset[str] | None
    """Ids of endpoints of the AI gateway; the rule then applies only to their calls."""
    fields: tuple[RedactedField, ...]
    replacers: tuple[Replacer, ...]
    is_content_free: bool = False
    """Whether traces are stored without their content."""
    apply_to: frozenset[str] = frozenset((TRACES,))
    sends_unsearchable: bool = False
    """Whether content that the rule cannot search is sent to providers."""

    def applies(self, workspace: str, experiment_id: str, endpoint_id: str | None) -> bool:
        return (
            (self.workspaces is None or workspace in self.workspaces)
            and (self.experiments is None or experiment_id in self.experiments)
            and (self.endpoints is None or endpoint_id in self.endpoints)
        )


class Rules(NamedTuple):
    """All redaction rules of a deployment, in the order in which its setting lists them."""

    rules: tuple[Rule, ...]

    @property
    def of_traces(self) -> tuple[Rule, ...]:
        """The redaction rules that apply to traces."""
        return tuple(rule for rule in self.rules if TRACES in rule.apply_to)

    def redactor(
        self, workspace: str, experiment_id: str, endpoint_id: str | None = None
    ) -> Redactor | None:
        """Returns a redactor with the redaction rules for an experiment's traces; None without
        rules.

        Args:
            endpoint_id: the gateway's endpoint, if the trace is a call of it.
        """
        return _redactor(
            rule for rule in self.of_traces if rule.applies(workspace, experiment_id, endpoint_id)
        )

    def everywhere(self) -> Redactor | None:
        """Returns a redactor with all rules for traces, whatever their scope; None if there are
        none."""
        return _redactor(self.of_traces)

    def of_request(
        self, workspace: str, experiment_id: str, endpoint_id: str
    ) -> RequestRules | None:
        """Returns the rules of redaction for the requests that a call of a gateway's endpoint sends
        to providers; None if no rule applies to them.

        Args:
            experiment_id: the endpoint's experiment; empty if it has none.
        """
        chosen = tuple(
            rule
            for rule in self.rules
            if PROVIDERS in rule.apply_to and rule.applies(workspace, experiment_id, endpoint_id)
        )
        return RequestRules(chosen) if chosen else None


class RequestRules(NamedTuple):
    """The redaction rules (at least one) for the requests of a gateway call to model providers."""

    rules: tuple[Rule, ...]

    @property
    def refuse_unsearchable(self) -> bool:
        """Whether these redaction rules refuse a request of which a part cannot be searched. Rules
        that only name fields search nothing."""
        return any(rule.replacers and not rule.sends_unsearchable for rule in self.rules)

    def redactor(self, *, finds_credentials: bool = True) -> Redactor:
        """Returns a new redactor of a call's requests to providers, with a new time limit.

        Args:
            finds_credentials: whether the redactor also applies the rules that find credentials.
        """
        return Redactor(
            tuple(field for rule in self.rules for field in rule.fields),
            tuple(
                replacer
                for rule in self.rules
                for replacer in rule.replacers
                if finds_credentials or not replacer.finds_credentials
            ),
            detector_seconds=REQUEST_SECONDS,
        )


def parsed(value: Mapping[str, Any]) -> Rules:
    """Compiles the value of the setting ``redaction``, which was checked before. Raises KeyError,
    TypeError, ValueError or InvalidParameterValue if it is not such a value."""
    return Rules(tuple(map(_rule, value[RULES])))


def _redactor(rules: Iterable[Rule]) -> Redactor | None:
    chosen = list(rules)
    if not chosen:
        return None
    return Redactor(
        tuple(field for rule in chosen for field in rule.fields),
        tuple(replacer for rule in chosen for replacer in rule.replacers),
        is_content_free=any(rule.is_content_free for rule in chosen),
    )


def _rule(value: Mapping[str, Any]) -> Rule:
    unknown = value.keys() - _MEMBERS
    if unknown or sum(kind in value for kind in KINDS) != 1:
        # A member of a later release must not be ignored: private texts would be stored.
        raise ValueError(f"a rule has unknown members: {sorted(unknown)}")
    if value.get(CONTENT, NO_CONTENT) != NO_CONTENT:
        raise ValueError(f"no content that a rule may have: {value[CONTENT]!r}")
    apply_to = frozenset(value.get(APPLY_TO, (TRACES,)))
    if not apply_to or not apply_to.issubset(TARGETS):
        raise ValueError(f"a rule applies to something unknown: {sorted(apply_to)}")
    if value.get(UNSEARCHABLE, SEND) not in UNSEARCHABLES:
        raise ValueError(f"unknown: {value[UNSEARCHABLE]!r}")
    replacement = value.get(REPLACEMENT)
    return Rule(
        None if value.get(WORKSPACES) is None else frozenset(value[WORKSPACES]),
        None if value.get(EXPERIMENTS) is None else frozenset(value[EXPERIMENTS]),
        None if value.get(ENDPOINTS) is None else frozenset(value[ENDPOINTS]),
        tuple(
            fields.parse(text, replacement or DEFAULT_REPLACEMENT) for text in value.get(FIELDS, ())
        ),
        (
            *(of_entity(kind, replacement) for kind in value.get(ENTITIES, ())),
            *([of_pattern(value[PATTERN], replacement)] if PATTERN in value else ()),
        ),
        is_content_free=CONTENT in value,
        apply_to=apply_to,
        sends_unsearchable=value.get(UNSEARCHABLE) == SEND,
    )
