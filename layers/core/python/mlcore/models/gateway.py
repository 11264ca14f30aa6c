"""Declares the DynamoDB items in which the AI gateway's configuration and budgets are stored."""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.attribute_types import (
    DoubleAttribute,
    FlagAttribute,
    IntAttribute,
    TextAttribute,
    TextSetAttribute,
)
from mlcore.models.base import Item


class GatewayItem(Item):
    """Base of the AI gateway's DynamoDB items; ``version`` counts the writes of an item."""

    version = IntAttribute()
    created_by = TextAttribute(null=True)
    last_updated_by = TextAttribute(null=True)
    created_at = IntAttribute()
    last_updated_at = IntAttribute()


class GatewayConfiguration(Item):
    """Counts the changes of a workspace's gateway configuration in ``version``, so that two changes
    at once conflict."""

    pattern = keys.GATEWAY_CONFIGURATION

    version = IntAttribute()


class GatewaySecret(GatewayItem):
    """Credentials of a model provider: ``sealed`` is encrypted by KMS, or "" if there is none,
    ``masked`` (JSON) what may be shown. ``auth_config`` is JSON and no secret."""

    pattern = keys.GATEWAY_SECRET

    secret_id = TextAttribute()
    secret_name = TextAttribute()
    sealed = TextAttribute()
    masked = TextAttribute(null=True)
    provider = TextAttribute(null=True)
    auth_config = TextAttribute(null=True)


class GatewayModelDefinition(GatewayItem):
    """A model definition of the AI gateway: a provider's model, and the id of the secret (API key)
    to call it. The secret may have been deleted."""

    pattern = keys.GATEWAY_MODEL_DEFINITION

    model_definition_id = TextAttribute()
    name = TextAttribute()
    secret_id = TextAttribute()
    provider = TextAttribute()
    model_name = TextAttribute()


class GatewayEndpoint(GatewayItem):
    """An endpoint of the gateway. ``mappings`` (to model definitions), ``tags``, ``bindings``,
    ``guardrails`` and ``fallback`` are JSON."""

    pattern = keys.GATEWAY_ENDPOINT

    endpoint_id = TextAttribute()
    name = TextAttribute()
    mappings = TextAttribute(null=True)
    tags = TextAttribute(null=True)
    bindings = TextAttribute(null=True)
    guardrails = TextAttribute(null=True)
    routing_strategy = TextAttribute(null=True)
    fallback = TextAttribute(null=True)
    experiment_id = TextAttribute(null=True)
    usage_tracking = FlagAttribute()


class GatewayGuardrail(GatewayItem):
    """A guardrail of the AI gateway: a judge that checks requests to endpoints, or their answers.
    ``scorer`` (JSON) is a copy of a scorer's version; versions never change."""

    pattern = keys.GATEWAY_GUARDRAIL

    guardrail_id = TextAttribute()
    name = TextAttribute()
    scorer = TextAttribute()
    stage = TextAttribute()
    action = TextAttribute()
    action_endpoint_id = TextAttribute(null=True)


class GatewayBudget(GatewayItem):
    """A budget policy of ``workspace``: the US dollars that calls of the AI gateway may cost in
    each window of time."""

    pattern = keys.GATEWAY_BUDGET

    budget_policy_id = TextAttribute()
    workspace = TextAttribute()
    budget_unit = TextAttribute()
    budget_amount = DoubleAttribute()
    duration_unit = TextAttribute()
    duration_value = IntAttribute()
    target_scope = TextAttribute()
    budget_action = TextAttribute()
    target_value = TextAttribute(null=True)


class GatewaySpending(Item):
    """The cost of gateway calls in one window of a budget policy, in billionths of a US dollar, as
    integers add without loss. Deleted by its TTL some time after the window."""

    pattern = keys.GATEWAY_SPENDING

    spent = IntAttribute()
    earlier = IntAttribute(null=True)
    """The part of ``spent`` that calls cost before the policy was created or changed; absent if
    there is none."""
    last_addition = TextAttribute(null=True)
    """The id of the last addition, by which a repeated one is recognized."""
    event = TextAttribute(null=True)
    """The text that announces to webhooks that the budget was exceeded in this window; absent until
    then."""


class GatewayUsage(Item):
    """The requests and tokens of an API key, user, endpoint or workspace in one day, and in the
    last minute that had any. Deleted by its TTL some time after the day."""

    pattern = keys.GATEWAY_USAGE

    minute = IntAttribute()
    """The beginning of the minute, in ms since 1970."""
    minute_requests = IntAttribute()
    minute_tokens = IntAttribute()
    held_tokens = IntAttribute(null=True)
    """The part of ``minute_tokens`` and ``tokens`` that open calls have reserved and not used
    yet."""
    requests = IntAttribute()
    tokens = IntAttribute()
    last_addition = TextAttribute(null=True)
    """The id of the last write, by which a repeated one is recognized."""


class GatewayOpenCalls(Item):
    """The calls of the AI gateway by a key or user, or of an endpoint or workspace, that have not
    ended. Deleted by its TTL some time after the last of them must have ended."""

    pattern = keys.GATEWAY_OPEN_CALLS

    calls = TextSetAttribute()
    """Ids of calls; each begins with the second at which the call counts as ended, in 10 digits."""
