"""``python -m local.admin replay``: processes again the stream records that the indexer or the
lander (which writes changes for the system tables) gave up."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module

from operate.failure_queue import FailureQueue, Record
from operate.module_loading import load_modules
from operate.reindex import show

_LOST = (
    "the stream no longer has the records of a failure: every experiment was rebuilt, but which "
    "webhooks to call and which files to delete is no longer known. The message stays in the queue"
)

_RECORDS_LOST = (
    "the stream no longer has the records of a failure: run `local.admin system-tables backfill "
    "--land`, then delete the message. It stays in the queue"
)
_BUCKET = "SYSTEM_TABLES_BUCKET"


def replay(
    queue: FailureQueue,
    rebuild: Callable[[str], bool],
    every: Callable[[], Iterable[str]],
    tell: Callable[[Sequence[Record]], bool],
) -> bool:
    """For each message of the indexer's failure queue: rebuilds the experiments of its records,
    repeats their side effects (webhooks and file removals), and deletes the message if both
    succeeded. Returns whether none of them remains. A message that an earlier call left is hidden
    for :data:`.failure_queue.HIDDEN_SECONDS`, and does not count.

    Args:
        rebuild: rebuilds an experiment by its id; returns whether that succeeded.
        every: returns the ids of all experiments, for messages whose records the stream no longer
            has.
        tell: repeats the webhooks and file removals of records; returns whether that succeeded.
    """
    failures = list(queue.failures())
    named: set[str] = set().union(*(failure.experiment_ids or () for failure in failures))
    if any(failure.experiment_ids is None for failure in failures):
        named.update(every())
    broken = {experiment_id for experiment_id in sorted(named) if not rebuild(experiment_id)}
    remaining = 0
    for failure in failures:
        if failure.records is None:
            remaining += 1
            print(_LOST, file=sys.stderr)
        elif broken.isdisjoint(failure.experiment_ids or ()) and tell(failure.records):
            queue.done(failure)
        else:
            remaining += 1
    print(f"{len(failures) - remaining} failures replayed, {remaining} remaining in the queue")
    return not remaining


def replay_to_landing(queue: FailureQueue, land: Callable[[Sequence[Record]], None]) -> bool:
    """Repeats the work of the lander (which writes changes for the system tables) for each message
    of its failure queue: writes the records of the message to a landing object and deletes the
    message. Records that are written twice have no further effect. A message whose records the
    stream no longer has stays. Returns whether none of the messages remains, as :func:`replay`
    does.

    Args:
        land: writes the changes in the records as a landing object.
    """
    remaining = landed = 0
    for failure in list(queue.failures()):
        if failure.records is None:
            remaining += 1
            print(_RECORDS_LOST, file=sys.stderr)
            continue
        if failure.records:
            land(failure.records)
        queue.done(failure)
        landed += 1
    print(f"{landed} failures landed, {remaining} remaining in the queue")
    return not remaining


def run_landing(url: str) -> int:
    """Processes the messages of the failure queue of the lander (which writes changes for the
    system tables) again. Returns 0 if none of them remains, otherwise 1."""
    load_modules()
    if not os.environ.get(_BUCKET):
        print(f"set {_BUCKET}: the stack's output SystemTablesBucketName", file=sys.stderr)
        return 1
    lander = import_module("lander.app")

    def land(records: Sequence[Record]) -> None:
        lander.land(records, lander.shard_of(records))

    return 0 if replay_to_landing(FailureQueue(url), land) else 1


def run(url: str | None, lander_url: str | None = None) -> int:
    """Processes the messages of a failure queue again: of the indexer's if ``url`` is given,
    otherwise of the lander's (the lander writes changes for the system tables). Returns 0 if none
    of them remains, otherwise 1."""
    return run_indexing(url) if url else run_landing(lander_url or "")


def run_indexing(url: str) -> int:
    rebuilding, errors = load_modules()

    def rebuild(experiment_id: str) -> bool:
        try:
            show(rebuilding.reindex(experiment_id))
        except (errors.ResourceDoesNotExist, errors.InvalidParameterValue):
            return True  # the experiment was deleted: it has no derived items
        except errors.MlflowError as error:
            print(f"experiment {experiment_id}: {error.message}", file=sys.stderr)
            return False
        return True

    app = import_module("indexer.app")

    def tell(records: Sequence[Record]) -> bool:
        missing = [name for name in app.queues_of(records) if not os.environ.get(name)]
        if missing:
            print(
                f"set {' and '.join(missing)}: webhooks or file removals wait to be sent",
                file=sys.stderr,
            )
            return False
        try:
            app.run_side_effects(records)
        except errors.MlflowError as error:
            print(f"webhooks or file removals could not be sent: {error.message}", file=sys.stderr)
            return False
        return True

    return 0 if replay(FailureQueue(url), rebuild, rebuilding.experiment_ids, tell) else 1
