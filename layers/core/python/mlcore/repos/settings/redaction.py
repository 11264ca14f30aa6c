"""The setting ``redaction``: which texts are replaced before a trace is stored, or before a
provider of models gets them.

A process uses new rules a minute after they were set at the latest. A value that cannot be read is
never taken for "no rules": the request fails, and the client repeats it. A process without rules
imports nothing of :mod:`mlcore.redaction` but the names in :mod:`mlcore.redaction.setting`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.errors import InvalidParameterValue, TemporarilyUnavailable
from mlcore.redaction.setting import RULES, SETTING
from mlcore.repos.settings.cached_setting import Setting

if TYPE_CHECKING:
    from mlcore.redaction.redactor import Redactor
    from mlcore.redaction.rules import RequestRules, Rules


class _NoRules:
    """Stands for :class:`mlcore.redaction.rules.Rules` if no rule is set."""

    of_traces: tuple[()] = ()

    def redactor(self, workspace: str, experiment_id: str, endpoint_id: str | None = None) -> None:
        """Returns None: there is nothing to redact, whatever the experiment."""

    def everywhere(self) -> None:
        """Returns None: there is nothing to redact anywhere."""

    def of_request(self, workspace: str, experiment_id: str, endpoint_id: str) -> None:
        """Returns None: there is nothing to redact in a request to a provider."""


_NO_RULES: Final = _NoRules()


def _parsed(value: Any) -> Rules | _NoRules:
    if value is None or value == {RULES: []}:
        return _NO_RULES
    from mlcore.redaction import rules  # noqa: PLC0415 -- only where rules are set

    try:
        return rules.parsed(value)
    except (AttributeError, KeyError, TypeError, ValueError, InvalidParameterValue) as error:
        raise TemporarilyUnavailable(
            "The rules of redaction cannot be read, so nothing was stored or sent to a provider. "
            "Try again, or have an administrator set them again."
        ) from error


_rules: Setting[Rules | _NoRules] = Setting(SETTING, _parsed)


def key() -> Key:
    """Returns the key of the item of the setting ``redaction``, for a caller that reads it
    together with other items and then calls :func:`learn`."""
    return _rules.key


def unread_keys() -> Sequence[Key]:
    """Returns the key of the setting with the redaction rules, for a BatchGetItem of the caller, so
    that :func:`redactor` needs no request; empty while the setting is cached."""
    return () if _rules.remembered() is not None else (_rules.key,)


def learn(items: Sequence[Raw | None]) -> None:
    """Caches the rules of redaction from the items that a caller has read at the keys of
    :func:`unread_keys`; None for a missing item."""
    for item in items:
        _rules.learn(item)


def redactor(workspace: str, experiment_id: str, endpoint_id: str | None = None) -> Redactor | None:
    """Returns the redactor for the traces of an experiment or, with ``endpoint_id``, for the trace
    of a call of this gateway endpoint; None if no rule applies. At most one GetItem per minute.
    Raises TemporarilyUnavailable if the rules cannot be read."""
    return _rules.current().redactor(workspace, experiment_id, endpoint_id)


def has_rules() -> bool:
    """Whether any rule of redaction for traces is set, for whatever experiment or endpoint."""
    return bool(_rules.current().of_traces)


def every_rule() -> Redactor | None:
    """Returns a redactor that applies all rules of redaction for traces, for whatever experiment or
    endpoint they are set; None if there is no rule."""
    return _rules.current().everywhere()


def of_request(workspace: str, experiment_id: str, endpoint_id: str) -> RequestRules | None:
    """Returns the redaction rules for the requests that a call of a gateway endpoint sends to model
    providers; None if there are none. At most one GetItem per minute. Raises TemporarilyUnavailable
    if the rules cannot be read.

    Args:
        experiment_id: the endpoint's experiment; empty if it has none.
    """
    return _rules.current().of_request(workspace, experiment_id, endpoint_id)
