"""Executes one call through a gateway endpoint: checks budgets and rate limits, calls the
endpoint's models, adds the cost, and writes the trace.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from mlcore.entities.gateway import BudgetPolicy, Configuration
from mlcore.errors import CallerLeft, GatewayCallFailed
from mlcore.gateway import budgets, model_choice, rate_limits
from mlcore.gateway.budgets import Payer
from mlcore.gateway.call_spans import Recording, Span
from mlcore.gateway.caller import Caller
from mlcore.gateway.chat_schemas import Shape
from mlcore.gateway.model_choice import Route
from mlcore.gateway.rate_limits import Admission, CallOrigin, Limited
from mlcore.gateway.retries import USUAL, Handling, Repeats
from mlcore.observability import logger
from mlcore.prices.model_call_cost import cost
from mlcore.providers.provider import Provider
from mlcore.providers.proxied import BinaryEvent, ProxiedRequest
from mlcore.repos.settings import gateway_call_settings, llm_prices, redaction
from mlcore.reserved_tags import SPAN_INPUTS
from mlcore.spans.attribute_values import json_text
from mlcore.spans.names import SPAN_COST

if TYPE_CHECKING:
    from mlcore.gateway.request_redaction import RequestRedaction

Json = dict[str, Any]
T = TypeVar("T")
Usage = Callable[[Provider, Any], dict[str, int]]
"""Returns the token counts in an answer, or in one part of a stream, by MLflow's names."""


class Guardrails(Protocol):
    """The interface of the AI gateway's guardrails: ``before`` checks a request before a model gets
    it, ``after`` checks the model's answer before the caller gets it."""

    @property
    def checks_answers(self) -> bool:
        """Whether a guardrail checks the answers of models, so that the answers must be complete
        and cannot be streamed."""

    def before(self, request: Json, shape: Shape | None = None) -> Json: ...

    def after(self, request: Json, answer: Json, shape: Shape | None = None) -> Json: ...


class Invocation:
    """One call of a gateway endpoint: asks the endpoint's models, records each attempt, and adds
    the cost of the models that answered to the budgets."""

    def __init__(
        self,
        route: Route,
        policies: Sequence[BudgetPolicy],
        record: Recording,
        limited: Sequence[Limited],
        admission: Admission,
    ) -> None:
        self.route = route
        self.record = record
        self.guardrails: Guardrails | None = None
        """Set by :mod:`mlcore.gateway.guarded_calls`; None: nothing checks the call."""
        self.limit_headers = admission.headers
        """Headers for the response, with what remains of the limits to which the call counts."""
        self.redactions: tuple[RequestRedaction, ...] = ()
        """The redactions that are applied to every request of the call to a provider."""
        self._policies = policies
        self._limited = limited
        self._admission = admission

    @contextmanager
    def recorded(self, inputs: Any, request_type: str, message_format: str = "") -> Iterator[Span]:
        """Records all attempts inside the ``with`` block as one call. When the block ends, adds the
        cost to the budgets and writes the trace.

        Raises:
            GatewayCallFailed: as many gateway calls are in progress as a limit allows (429). No
                MLflow trace is then written for this call.
        """
        limited = () if self.record.caller.is_internal else self._limited
        with rate_limits.open_call(limited, self._admission):
            try:
                with self.record.call(inputs, request_type, message_format) as span:
                    yield span
            finally:
                self._finish()

    def redacted(self, request: Json) -> Json:
        """Applies the call's redactions to a JSON request and returns it; the same object if they
        match nothing. Guardrails and the trace get the redacted request. Raises GatewayCallFailed
        (400) if a part of the request cannot be searched; the call then counts to no limit."""
        return self._redacted(_body, request)

    def redacted_headers(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        """Applies the call's redactions to the caller's headers; returns and raises as
        :meth:`mlcore.gateway.request_redaction.RequestRedaction.headers` does. If it raises, the
        call counts to no limit."""
        return self._redacted(lambda rules, given: rules.headers(given), headers)

    def redacted_proxied(self, request: ProxiedRequest) -> ProxiedRequest:
        """Applies the call's redactions to a request to any path of a model provider and returns
        it. Raises GatewayCallFailed as :meth:`redacted` does."""
        return self._redacted(lambda rules, given: rules.proxied(given), request)

    def _redacted(self, redact: Callable[[RequestRedaction, T], T], value: T) -> T:
        try:
            return self._applied(redact, value)
        except Exception:  # whatever fails, no call is made
            self.refuse()
            raise

    def _applied(self, redact: Callable[[RequestRedaction, T], T], value: T) -> T:
        for rules in self.redactions:
            value = redact(rules, value)
        return value

    def guarded_request(self, request: Json, shape: Shape | None = None) -> Json:
        """Passes a redacted request through the guardrails, if the call has any. Returns the
        request, unchanged or rewritten by a guardrail. A rewritten request is redacted again.

        Args:
            shape: the form that a rewritten request must have; None if the request has the form of
                a provider's own API, which is not checked.

        Raises:
            GatewayCallFailed, InvalidParameterValue: as
                :meth:`mlcore.gateway.guardrails.EndpointGuardrails.before` and :meth:`redacted`.
        """
        if self.guardrails is None:
            return request
        guarded = self.guardrails.before(request, shape)
        return request if guarded is request else self._applied(_body, guarded)

    def _prepare(self, provider: Provider) -> None:
        """Sets the provider's ``redacted``, by which it redacts requests that it has translated to
        its own form."""
        if self.redactions:
            provider.redacted = lambda request: self._applied(
                lambda rules, body: rules.translated(body), request
            )

    @property
    def needs_whole_answer(self) -> bool:
        """Whether a guardrail checks answers, before any part is sent."""
        return self.guardrails is not None and self.guardrails.checks_answers

    def ask(
        self, ask: Callable[[Provider], Json], usage: Usage, handling: Handling = USUAL
    ) -> Json:
        """Asks the models of the gateway endpoint in turn and returns the complete answer of the
        first one that does not fail. Raises GatewayCallFailed if all models fail.

        Args:
            ask: calls the model through its provider.
            usage: gets the token counts from an answer.
            handling: whether a failed call is repeated, and whether circuit breakers apply. They
                never apply to calls that the server itself makes.
        """

        def attempt(provider: Provider) -> Json:
            self._prepare(provider)
            with self.record.attempt(provider) as span:
                try:
                    answer = ask(provider)
                except CallerLeft:
                    span.add_usage(self._least_usage(span, 0))
                    raise
                except GatewayCallFailed:
                    span.add_usage(provider.spent)
                    raise
                span.add_usage(usage(provider, answer))
                return answer

        return self.route.ask(attempt, self._handling(handling))

    def stream(
        self,
        ask: Callable[[Provider], Iterator[Any]],
        usage: Usage,
        named_models: tuple[str, ...] | None = None,
        handling: Handling = USUAL,
    ) -> Iterator[Any]:
        """Asks the endpoint's models in turn and yields the parts of the first streamed answer that
        does not fail. Raises GatewayCallFailed, possibly after some parts.

        Args:
            ask: as in :meth:`ask`.
            usage: as in :meth:`ask`.
            named_models: for a request that is forwarded unchanged, the models that it names; None
                for any other. With such a request, a part that is JSON is a whole answer, not an
                event of a stream.
            handling: as in :meth:`ask`.
        """

        def attempt(provider: Provider) -> Generator[Any]:
            self._prepare(provider)
            with self.record.attempt(provider, is_streamed=True) as span:
                span.named_models = named_models or ()
                events = 0
                try:
                    for part in ask(provider):
                        span.add_usage(usage(provider, part))
                        events += _is_event(part, is_proxied=named_models is not None)
                        yield part
                except (GeneratorExit, CallerLeft):
                    span.add_usage(self._least_usage(span, events))
                    raise
                if events and not span.usage:
                    span.add_usage(self._least_usage(span, events))

        return self.route.stream(attempt, self._handling(handling))

    def _handling(self, usual: Handling) -> Handling:
        """Returns how failures of a provider are handled. A call of the server itself ignores
        circuit breakers, because the job or the call of which it is a part would fail with it. It
        is not retried if its caller repeats it."""
        caller = self.record.caller
        if not caller.is_internal:
            return usual
        return Handling(Repeats.NEVER if caller.repeats_itself else usual.repeats, False)

    def _least_usage(self, span: Span, events: int) -> dict[str, int]:
        """Returns estimated token counts for a stream whose provider reported none, so that a
        caller cannot read an answer that counts in no budget. (A provider reports them at the end
        of the stream, which a client can leave earlier, or only on request.) Each event counts as
        one output token; if the input was not counted, four characters count as one token."""
        reported = span.usage
        request = self.record.spans[0].attributes.get(SPAN_INPUTS)
        counted = {
            "input_tokens": reported.get("input_tokens") or len(json_text(request)) // 4,
            "output_tokens": max(reported.get("output_tokens", 0), events),
        }
        return {**counted, "total_tokens": sum(counted.values())}

    def refuse(self) -> None:
        """Takes this AI gateway call out of the counts of its rate limits: no model is called."""
        self._admission.put_back()

    def _finish(self) -> None:
        """Adds the call's cost and tokens to budgets and limits, and writes the trace. The caller
        has the answer already, so an error is logged and does not fail the call."""
        try:
            dollars = self._cost() if self._policies or self.record.is_traced else 0
            if dollars > 0:
                budgets.add_cost(self._policies, dollars, self.record.workspace)
        except Exception:
            context = {"endpoint_id": self.route.endpoint.endpoint_id}
            logger.exception("the cost of a call was not added", extra=context)
        self._admission.settle(self._tokens())
        if self.record.is_traced:
            _write_trace(self.record)

    def _tokens(self) -> int:
        """Returns the sum of the tokens of all models that the call has asked."""
        spans = (span for span in self.record.spans if span.model is not None)
        return sum(span.usage.get("total_tokens", 0) for span in spans)

    def _cost(self) -> float:
        """Returns the cost of the call in US dollars, and sets the cost of its model on each span
        that asked one. For a request that names models itself, the highest cost among those models
        and the endpoint's counts, since some may have no price."""
        model_spans = [
            (span, span.model)
            for span in self.record.spans
            if span.model is not None and span.usage
        ]
        dollars = 0.0
        own_prices: Mapping[str, Any] = llm_prices.own() if model_spans else {}
        for span, model in model_spans:
            costs = [
                cost(name, span.usage, model.provider, own_prices)
                for name in (model.name, *span.named_models)
            ]
            span_cost = max(filter(None, costs), key=itemgetter("total_cost"), default=None)
            if span_cost is not None:
                span.attributes[SPAN_COST] = span_cost
                dollars += span_cost["total_cost"]
        return dollars


def _body(rules: RequestRedaction, body: Json) -> Json:
    return rules.body(body)


def _is_event(part: Any, *, is_proxied: bool) -> bool:
    """Whether a part of an answer is an event of a stream. A proxied answer may be whole."""
    if isinstance(part, bytes):
        return part.startswith(b"data:")
    return isinstance(part, BinaryEvent) or not is_proxied


def begin(
    workspace: str,
    endpoint_name: str,
    caller: Caller,
    *,
    known: Configuration | None = None,
) -> Invocation:
    """Begins a call to a gateway endpoint, without its guardrails. Takes two consistent Queries
    (one if ``known`` is given; more if one has over 1 MB to read), and a BatchGetItem if a budget
    can refuse calls. Once a minute another BatchGetItem reads the settings. Where limits are set,
    counting the request may need writes (:func:`mlcore.gateway.rate_limits.admit`).

    Args:
        known: the gateway's configuration, if it was already read for this request.

    Raises:
        ResourceDoesNotExist: no endpoint has the name, or it has no usable model.
        GatewayCallFailed: a budget is spent, or a limit is reached; status 429.
        TemporarilyUnavailable: the rules of redaction cannot be read.
    """
    call_route = model_choice.find(workspace, endpoint_name, known)
    record = Recording(call_route.endpoint, workspace, caller)
    policies = budgets.applicable(
        Payer(workspace, call_route.endpoint.endpoint_id, caller.username)
    )
    try:
        budgets.check(policies)
    except GatewayCallFailed as error:
        if record.is_traced:
            _write_refused_trace(record, error)
        raise
    gateway_call_settings.read()
    redactions = _redactions(call_route, workspace)
    # A call that is refused here leaves no trace: a flood of calls must not become one of writes.
    limited = rate_limits.applicable(
        CallOrigin(
            workspace,
            call_route.endpoint.endpoint_id,
            call_route.endpoint.name,
            caller.username,
            caller.key_id,
        )
    )
    call = Invocation(call_route, policies, record, limited, rate_limits.admit(limited))
    call.redactions = redactions
    return call


def _redactions(call_route: Route, workspace: str) -> tuple[RequestRedaction, ...]:
    """Returns the redactions for all requests that a call through an endpoint sends to
    providers."""
    endpoint = call_route.endpoint
    rules = redaction.of_request(workspace, endpoint.experiment_id or "", endpoint.endpoint_id)
    if rules is None:
        return ()
    from mlcore.gateway.request_redaction import RequestRedaction  # noqa: PLC0415 -- few have rules

    return (RequestRedaction(rules),)


def _write_refused_trace(record: Recording, error: GatewayCallFailed) -> None:
    """Writes the trace of a call that a budget refused, as MLflow's gateway does."""
    with suppress(GatewayCallFailed), record.call(None, ""):
        raise error
    _write_trace(record)


def _write_trace(record: Recording) -> None:
    from mlcore.gateway import call_traces  # noqa: PLC0415 -- 25 ms, paid after the answer

    call_traces.write(record)
