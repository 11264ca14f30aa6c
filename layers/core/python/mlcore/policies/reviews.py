"""Who may do what with label schemas, review queues and issues."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mlcore import errors
from mlcore.auth.permissions import ANY, EXPERIMENT, RUN
from mlcore.auth.requirements import NOT_DENIED, Requirement
from mlcore.entities.evaluation.review_queues import CUSTOM, ReviewQueue
from mlcore.policies.access import Access
from mlcore.policies.requests import Policy, are_here, creating, inside
from mlcore.repos.evaluation import entity_refs, review_queues
from mlcore.repos.experiments import experiments

REVIEW_QUEUE: Final = "review_queue"

Json = dict[str, Any]


def on_entity(field: str, action: str) -> Policy:
    """The action on the experiment of what a field of the message names. What is missing is
    refused like what is somebody else's."""

    def policy(access: Access, message: Any) -> bool:
        experiment_id = entity_refs.experiment_of(getattr(message, field))
        return (
            experiment_id is not None
            and access.allows(Requirement(EXPERIMENT, experiment_id, action))
            and are_here(access, [experiment_id])
        )

    return policy


def on_queue(action: str) -> Policy:
    def policy(access: Access, message: Any) -> bool:
        return _may(access, _queue(access, message).experiment_id, action)

    return policy


def create_queue(access: Access, message: Any) -> bool:
    return access.allows(*creating(message.experiment_id, REVIEW_QUEUE))


def view(access: Access, message: Any) -> bool:
    """Its members, its owner who may edit, and who manages queues."""
    return _sees(access, _queue(access, message))


def view_by_name(access: Access, message: Any) -> bool:
    if not _may(access, message.experiment_id, "read"):
        return False
    if _may(access, message.experiment_id, "manage"):
        return True
    experiment = experiments.find(message.experiment_id, access.workspace)
    if experiment is None:
        return False
    queue = review_queues.find_by_name(experiment, message.name)
    return queue is not None and _sees(access, queue)


def update(access: Access, message: Any) -> bool:
    """Another owner is given by who manages queues."""
    queue = _queue(access, message)
    if _may(access, queue.experiment_id, "manage"):
        return True
    return not message.has("new_owner") and _owns(access, queue)


def prune(access: Access, message: Any) -> bool:
    queue = _queue(access, message)
    if _may(access, queue.experiment_id, "manage"):
        return True
    return queue.queue_type == CUSTOM and _owns(access, queue)


def review(access: Access, message: Any) -> bool:
    queue = _queue(access, message)
    return _may(access, queue.experiment_id, "update") and _is_member(access, queue)


def search_issues(access: Access, message: Any) -> bool:
    """In one experiment; who may know of no run may not ask for a run's issues."""
    if not message.experiment_id:
        return False
    vetoes = [Requirement(RUN, ANY, NOT_DENIED)] if "source_run_id" in message.filter_string else []
    return access.allows(Requirement(EXPERIMENT, message.experiment_id, "read"), *vetoes)


def hide_queues(access: Access, message: Any, body: Json) -> None:
    """Who may only read sees the queues of which they are a member."""
    queues = body.get("review_queues")
    if not queues or _may(access, message.experiment_id, "update"):
        return
    reads = _may(access, message.experiment_id, "read")
    shown = [queue for queue in queues if reads and _folded(access) in queue.get("users", ())]
    del body["review_queues"]
    if shown:
        body["review_queues"] = shown


def hide_source_runs(access: Access, message: Any, body: Mapping[str, Any]) -> None:
    told = [issue for issue in (body.get("issue"), *body.get("issues", ())) if issue]
    if any("source_run_id" in issue for issue in told) and not access.allows(
        Requirement(RUN, ANY, NOT_DENIED)
    ):
        for issue in told:
            issue.pop("source_run_id", None)


def _queue(access: Access, message: Any) -> ReviewQueue:
    """Raises ResourceDoesNotExist."""
    queue = review_queues.find(message.queue_id, access.workspace)
    if queue is not None:
        return queue
    raise errors.ResourceDoesNotExist(f"Review queue with id '{message.queue_id}' not found.")


def _may(access: Access, experiment_id: str, action: str) -> bool:
    return access.allows(*inside(experiment_id, REVIEW_QUEUE, action))


def _sees(access: Access, queue: ReviewQueue) -> bool:
    if not _may(access, queue.experiment_id, "read"):
        return False
    return (
        _may(access, queue.experiment_id, "manage")
        or _is_member(access, queue)
        or _owns(access, queue)
    )


def _owns(access: Access, queue: ReviewQueue) -> bool:
    """Whether the caller made the queue and may edit."""
    return (queue.created_by or "").strip().lower() == _folded(access) and _may(
        access, queue.experiment_id, "update"
    )


def _is_member(access: Access, queue: ReviewQueue) -> bool:
    return _folded(access) in queue.users


def _folded(access: Access) -> str:
    return access.username.strip().lower()


read_schema = on_entity("schema_id", "read")
manage_schema = on_entity("schema_id", "manage")
update_queue = on_queue("update")
read_issue = on_entity("issue_id", "read")
update_issue = on_entity("issue_id", "update")
