"""Permission checks for requests about logged models."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mlcore.auth.permissions import ANY, LOGGED_MODEL, RUN
from mlcore.auth.requirements import NOT_DENIED, Requirement
from mlcore.models.logged_models import LoggedModel
from mlcore.policies.access import Access
from mlcore.policies.shared_rules import (
    Policy,
    create_inside,
    inside,
    on_runs,
    subject,
)
from mlcore.repos.logged_models import logged_models


def on_models(access: Access, model_ids: Iterable[str], action: str) -> bool:
    """Whether the caller may do the action on each logged model, by the rights on the model's
    experiment. A missing model is refused like one without a grant, so that ids cannot be probed.
    """
    distinct = list(dict.fromkeys(model_ids))
    if "" in distinct:
        return False
    for item in logged_models.find(distinct, access.workspace) if distinct else []:
        if item is None:
            return False
        if not access.allows(*inside(LoggedModel.of(item).experiment_id, LOGGED_MODEL, action)):
            return False
    return True


def on_model(action: str) -> Policy:
    def policy(access: Access, message: Any) -> bool:
        model_id = getattr(message, "path_model_id", "") or message.model_id
        return on_models(access, [model_id], action)

    return policy


def create(access: Access, message: Any) -> bool:
    if not access.allows(*create_inside(subject(message, "experiment_id"), LOGGED_MODEL)):
        return False
    return not message.source_run_id or on_runs(access, [message.source_run_id], "read")


def search(access: Access, message: Any) -> bool:
    """Allows every search for logged models; the route's function removes those that the caller may
    not read. Refuses a filter by run to callers with the permission DENY on runs, because the
    result would reveal which models a run made."""
    return "source_run_id" not in message.filter.lower() or access.allows(
        Requirement(RUN, ANY, NOT_DENIED)
    )


read_model = on_model("read")
update_model = on_model("update")
delete_model = on_model("delete")
