"""One call through an endpoint: whether it may be made, where it goes, what it has cost, and what
is kept of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from mlcore.entities.gateway import BudgetPolicy, Configuration
from mlcore.errors import GatewayCallFailed
from mlcore.gateway import budgets, route
from mlcore.gateway.budgets import Payer
from mlcore.gateway.recording import Caller, Recording, Span
from mlcore.gateway.route import Route
from mlcore.observability import logger
from mlcore.prices.cost import cost
from mlcore.providers.provider import Provider, with_total
from mlcore.repos.settings import llm_prices
from mlcore.spans.names import SPAN_COST

if TYPE_CHECKING:
    from mlcore.gateway.guardrails import Guards

Json = dict[str, Any]
Usage = Callable[[Provider, Any], dict[str, int]]
"""What an answer, or a part of one, tells of tokens, by MLflow's names."""


class Invocation:
    """Asks the models of an endpoint, and counts what those that answered have told."""

    def __init__(
        self,
        way: Route,
        policies: Sequence[BudgetPolicy],
        record: Recording,
        guards: Guards | None = None,
    ) -> None:
        self.way = way
        self.record = record
        self.guards = guards
        """What looks at the request and at the answer; None if nothing does."""
        self._policies = policies

    @contextmanager
    def going(self, inputs: Any, request_type: str, message_format: str = "") -> Iterator[Span]:
        """All of the call: what is asked within it is counted and kept when it is over."""
        try:
            with self.record.call(inputs, request_type, message_format) as span:
                yield span
        finally:
            self._over()

    def looked_at(self, request: Json) -> Json:
        """A request in any form, as guardrails let it pass. Raises as :meth:`Guards.before`."""
        return request if self.guards is None else self.guards.before(request)

    def whole(self, ask: Callable[[Provider], Json], usage: Usage) -> Json:
        """An answer that comes at once. Raises GatewayCallFailed."""

        def asked(provider: Provider) -> Json:
            with self.record.attempt(provider.model) as span:
                answer = ask(provider)
                span.used(usage(provider, answer))
                return answer

        return self.way.ask(asked)

    def parts(self, ask: Callable[[Provider], Iterator[Any]], usage: Usage) -> Iterator[Any]:
        """An answer that comes in parts. Raises GatewayCallFailed, at any of them."""

        def asked(provider: Provider) -> Iterator[Any]:
            with self.record.attempt(provider.model) as span:
                for part in ask(provider):
                    span.used(usage(provider, part))
                    yield part

        return self.way.stream(asked)

    def _over(self) -> None:
        """The caller has the answer, so nothing fails for it."""
        try:
            dollars = self._cost() if self._policies or self.record.is_kept else 0
            if dollars > 0:
                budgets.count(self._policies, dollars)
        except Exception:
            about = {"endpoint_id": self.way.endpoint.endpoint_id}
            logger.exception("what a call cost was not counted", extra=about)
        if self.record.is_kept:
            _keep(self.record)

    def _cost(self) -> float:
        """US dollars; each span that asked a model learns its own."""
        used = [
            (span, span.model)
            for span in self.record.spans
            if span.model is not None and span.usage
        ]
        dollars = 0.0
        own: Mapping[str, Any] = llm_prices.own() if used else {}
        for span, model in used:
            found = cost(model.name, with_total(dict(span.usage)), model.provider, own)
            if found is not None:
                span.attributes[SPAN_COST] = found
                dollars += found["total_cost"]
        return dollars


def begun(
    workspace: str,
    endpoint_name: str,
    caller: Caller,
    *,
    known: Configuration | None = None,
    guarded: bool = True,
) -> Invocation:
    """Two consistent Queries, and a BatchGetItem where a budget may end calls.

    Args:
        known: the configuration, if somebody has read it for the same request.
        guarded: whether the endpoint's guardrails count; not for what a guardrail asks itself.

    Raises:
        ResourceDoesNotExist: no endpoint has the name, or it has no model.
        GatewayCallFailed: a budget is spent, or the endpoint has a guardrail that cannot be
            applied.
    """
    way = route.find(workspace, endpoint_name, known)
    record = Recording(way.endpoint, workspace, caller)
    policies = budgets.applying(Payer(workspace, way.endpoint.endpoint_id, caller.username))
    try:
        budgets.check(policies)
    except GatewayCallFailed as error:
        if record.is_kept:
            _keep_refused(record, error)
        raise
    guards = None
    if guarded and way.known.guardrails_of(way.endpoint):
        from mlcore.gateway.guardrails import Guards  # noqa: PLC0415 -- few endpoints have some

        guards = Guards(way, record)
    return Invocation(way, policies, record, guards)


def _keep_refused(record: Recording, error: GatewayCallFailed) -> None:
    """Keeps a call that was not made, as MLflow's gateway does."""
    with suppress(GatewayCallFailed), record.call(None, ""):
        raise error
    _keep(record)


def _keep(record: Recording) -> None:
    from mlcore.gateway import call_traces  # noqa: PLC0415 -- 25 ms that no call waits for before

    call_traces.write(record)
