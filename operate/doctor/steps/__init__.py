"""The list of a checkup's steps, in the order in which they run."""

from __future__ import annotations

from typing import Final

from operate.doctor.steps import (
    alarms,
    backups,
    client,
    cross_origin,
    experiments,
    failure_queues,
    gateway,
    health,
    index,
    kubeflow,
    logged_models,
    login,
    quotas,
    registry,
    runs,
    search,
    system_tables,
    table,
    throttles,
    traces,
    versions,
    web_ui,
    webhooks,
)
from operate.doctor.steps.step import Step

__all__ = ["STEPS", "Step"]

STEPS: Final = (
    Step("server", 5.0, health.reach, decides=True),
    Step("login", 10.0, login.log_in, decides=True),
    Step("leftovers", 10.0, experiments.remove_leftovers),
    Step("experiment", 5.0, experiments.create, decides=True),
    Step("run", 8.0, runs.log),
    Step("search", 8.0, search.search_at_once),
    Step("trace", 8.0, traces.export),
    Step("logged-model", 8.0, logged_models.create),
    Step("logged-model-search", 4.0, logged_models.search),
    Step("registry", 8.0, registry.register),
    Step("kubeflow", 8.0, kubeflow.read),
    Step("webhook", 60.0, webhooks.receive),
    Step("client", 120.0, client.use),
    Step("index", 30.0, index.follow),
    Step("sql", 180.0, system_tables.query),
    Step("gateway", 20.0, gateway.call),
    Step("web-ui", 30.0, web_ui.load),
    Step("routes", 90.0, web_ui.reach_functions),
    Step("cross-origin", 5.0, cross_origin.refuse),
    Step("versions", 30.0, versions.compare),
    Step("alarms", 15.0, alarms.read),
    Step("failure-queues", 15.0, failure_queues.read),
    Step("throttles", 30.0, throttles.read),
    Step("quotas", 15.0, quotas.read),
    Step("table", 15.0, table.read),
    Step("backups", 15.0, backups.read),
)
