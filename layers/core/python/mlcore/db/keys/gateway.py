"""Keys of the AI gateway. The configuration of a workspace has a partition of its own, so that one
consistent Query per MB reads it. Budget policies of all workspaces share a partition, because a
global policy applies to each workspace."""

from __future__ import annotations

from mlcore.db.keys.pattern import Key, Pattern

_CONFIGURATION = "GATEWAY#<workspace>"
_BUDGETS = "GATEWAYBUDGETS"

GATEWAY_CONFIGURATION = Pattern(
    "gateway_configuration",
    _CONFIGURATION,
    "GATEWAY#META",
    "counts the changes of a workspace's gateway configuration",
)
GATEWAY_SECRET = Pattern(
    "gateway_secret", _CONFIGURATION, "GWSECRET#<secret_id>", "a provider's credentials, encrypted"
)
GATEWAY_MODEL_DEFINITION = Pattern(
    "gateway_model_definition",
    _CONFIGURATION,
    "GWMODEL#<model_definition_id>",
    "a model of a provider and the secret it is called with",
)
GATEWAY_ENDPOINT = Pattern(
    "gateway_endpoint",
    _CONFIGURATION,
    "GWENDPOINT#<endpoint_id>",
    "an endpoint with its models, tags, bindings and the order of its guardrails",
)
GATEWAY_GUARDRAIL = Pattern(
    "gateway_guardrail", _CONFIGURATION, "GWGUARDRAIL#<guardrail_id>", "a scorer that guards calls"
)
GATEWAY_BUDGET = Pattern(
    "gateway_budget",
    _BUDGETS,
    "GWBUDGET#<budget_policy_id>",
    "a budget policy: how much calls may cost",
)
GATEWAY_SPENDING = Pattern(
    "gateway_spending",
    "GATEWAYSPENDING#<budget_policy_id>",
    "GWSPENDING#<time>",
    "what was spent of a budget in one of its windows",
)
GATEWAY_USAGE = Pattern(
    "gateway_usage",
    "GATEWAYUSAGE#<target>",
    "GWUSAGE#<time>",
    "requests and tokens of a key, user, endpoint or workspace in one day",
)
GATEWAY_OPEN_CALLS = Pattern(
    "gateway_open_calls",
    "GATEWAYUSAGE#<target>",
    "GWCALLS",
    "the calls of a key, user, endpoint or workspace that have not ended",
)

GATEWAY_PATTERNS = (
    GATEWAY_CONFIGURATION,
    GATEWAY_SECRET,
    GATEWAY_MODEL_DEFINITION,
    GATEWAY_ENDPOINT,
    GATEWAY_GUARDRAIL,
    GATEWAY_BUDGET,
    GATEWAY_SPENDING,
    GATEWAY_USAGE,
    GATEWAY_OPEN_CALLS,
)


def gateway_configuration(workspace: str) -> Key:
    return Key(GATEWAY_CONFIGURATION.pk.build(workspace), GATEWAY_CONFIGURATION.sk.build())


def gateway_secret(workspace: str, secret_id: str) -> Key:
    return Key(GATEWAY_SECRET.pk.build(workspace), GATEWAY_SECRET.sk.build(secret_id))


def gateway_model_definition(workspace: str, model_definition_id: str) -> Key:
    pattern = GATEWAY_MODEL_DEFINITION
    return Key(pattern.pk.build(workspace), pattern.sk.build(model_definition_id))


def gateway_endpoint(workspace: str, endpoint_id: str) -> Key:
    return Key(GATEWAY_ENDPOINT.pk.build(workspace), GATEWAY_ENDPOINT.sk.build(endpoint_id))


def gateway_guardrail(workspace: str, guardrail_id: str) -> Key:
    return Key(GATEWAY_GUARDRAIL.pk.build(workspace), GATEWAY_GUARDRAIL.sk.build(guardrail_id))


def gateway_budget(budget_policy_id: str) -> Key:
    return Key(GATEWAY_BUDGET.pk.build(), GATEWAY_BUDGET.sk.build(budget_policy_id))


def gateway_budget_prefix() -> str:
    return GATEWAY_BUDGET.sk.prefix()


def gateway_spending(budget_policy_id: str, window_start_ms: int) -> Key:
    pattern = GATEWAY_SPENDING
    return Key(pattern.pk.build(budget_policy_id), pattern.sk.build(window_start_ms))


def gateway_usage(target: str, day_start_ms: int) -> Key:
    pattern = GATEWAY_USAGE
    return Key(pattern.pk.build(target), pattern.sk.build(day_start_ms))


def gateway_open_calls(target: str) -> Key:
    return Key(GATEWAY_OPEN_CALLS.pk.build(target), GATEWAY_OPEN_CALLS.sk.build())
