"""Calls of language models through the AI gateway: routing to the models of an endpoint with
fallbacks, budgets, guardrails, streaming, and traces of calls."""
