"""Calls of language models through the AI gateway: routing to the models of an endpoint with
fallbacks, budgets, guardrails, streaming, and traces of calls.

An *endpoint* is a name that clients call; the gateway's configuration maps it to models of
providers. A *guardrail* is a judge (a model with instructions) that checks requests or answers of
an endpoint.
"""
