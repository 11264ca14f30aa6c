"""One call through an endpoint: whether it may be made, where it goes, and what it has cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mlcore.entities.gateway import BudgetPolicy
from mlcore.errors import GatewayCallFailed
from mlcore.gateway import budgets, route
from mlcore.gateway.budgets import Payer
from mlcore.gateway.route import Route
from mlcore.prices.cost import cost
from mlcore.providers.model import Model
from mlcore.providers.provider import Provider, with_total
from mlcore.repos.settings import llm_prices

Json = dict[str, Any]
Usage = Callable[[Provider, Any], dict[str, int]]
"""What an answer, or a part of one, tells of tokens, by MLflow's names."""


class Invocation:
    """Asks the models of an endpoint, and counts what the one that answered has told."""

    def __init__(self, way: Route, policies: Sequence[BudgetPolicy]) -> None:
        self.way = way
        self._policies = policies
        self._model: Model | None = None
        self._usage: dict[str, int] = {}

    def whole(self, ask: Callable[[Provider], Json], usage: Usage) -> Json:
        """An answer that comes at once. Raises GatewayCallFailed."""

        def asked(provider: Provider) -> Json:
            answer = ask(provider)
            self._told(provider, usage(provider, answer))
            return answer

        try:
            return self.way.ask(asked)
        finally:
            self._over()

    def parts(self, ask: Callable[[Provider], Iterator[Any]], usage: Usage) -> Iterator[Any]:
        """An answer that comes in parts. Raises GatewayCallFailed, at any of them."""

        def asked(provider: Provider) -> Iterator[Any]:
            for part in ask(provider):
                self._told(provider, usage(provider, part))
                yield part

        try:
            yield from self.way.stream(asked)
        finally:
            self._over()

    def _told(self, provider: Provider, usage: dict[str, int]) -> None:
        self._model = provider.model
        self._usage |= usage

    def _over(self) -> None:
        if self._model is None or not self._usage or not self._policies:
            return
        usage = with_total(dict(self._usage))
        found = cost(self._model.name, usage, self._model.provider, llm_prices.own())
        if found is not None and found["total_cost"] > 0:
            budgets.count(self._policies, found["total_cost"])


def begun(workspace: str, endpoint_name: str, username: str | None) -> Invocation:
    """Two consistent Queries, and a BatchGetItem where a budget may end calls.

    Raises:
        ResourceDoesNotExist: no endpoint has the name, or it has no model.
        GatewayCallFailed: a budget is spent, or the endpoint has guardrails.
    """
    way = route.find(workspace, endpoint_name)
    policies = budgets.applying(Payer(workspace, way.endpoint.endpoint_id, username))
    budgets.check(policies)
    if any(use.guardrail_id in way.known.guardrails for use in way.endpoint.guardrails):
        raise GatewayCallFailed(
            501,
            f"Endpoint '{endpoint_name}' has guardrails, which this server cannot apply to calls. "
            "Take them off the endpoint to call it.",
        )
    return Invocation(way, policies)
