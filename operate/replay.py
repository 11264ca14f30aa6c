"""``python -m local.admin replay``: works off the indexer's failure queue."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module

from operate.failures import FailureQueue, Record
from operate.modules import modules
from operate.verification import show

_LOST = (
    "the stream no longer has the records of a failure: every experiment was rebuilt, but which "
    "webhooks were to hear of them and which files were to go cannot be told. The message stays"
)


def replay(
    queue: FailureQueue,
    rebuild: Callable[[str], bool],
    every: Callable[[], Iterable[str]],
    tell: Callable[[Sequence[Record]], bool],
) -> bool:
    """Rebuilds the experiments that the queue's messages are about, each once, tells what their
    records say, and takes away the messages of which both went well; whether that was all.

    Args:
        rebuild: an experiment by its id; whether it could be.
        every: the ids of all experiments, for messages that no longer tell which.
        tell: webhooks and the remover of files what records say; whether it could be.
    """
    failures = list(queue.failures())
    named: set[str] = set().union(*(failure.experiment_ids or () for failure in failures))
    if any(failure.experiment_ids is None for failure in failures):
        named.update(every())
    broken = {one for one in sorted(named) if not rebuild(one)}
    left = 0
    for failure in failures:
        if failure.records is None:
            left += 1
            print(_LOST, file=sys.stderr)
        elif broken.isdisjoint(failure.experiment_ids or ()) and tell(failure.records):
            queue.done(failure)
        else:
            left += 1
    print(f"{len(failures) - left} failures replayed, {left} left in the queue")
    return not left


def run(url: str) -> int:
    rebuilding, errors = modules()

    def rebuild(experiment_id: str) -> bool:
        try:
            show(rebuilding.reindex(experiment_id))
        except (errors.ResourceDoesNotExist, errors.InvalidParameterValue):
            return True  # it is gone, and there is nothing to derive from
        except errors.MlflowError as error:
            print(f"experiment {experiment_id}: {error.message}", file=sys.stderr)
            return False
        return True

    app = import_module("indexer.app")

    def tell(records: Sequence[Record]) -> bool:
        missing = [name for name in app.queues_of(records) if not os.environ.get(name)]
        if missing:
            print(f"set {' and '.join(missing)}: records have something to say", file=sys.stderr)
            return False
        try:
            app.tell(records)
        except errors.MlflowError as error:
            print(f"what records say could not be told: {error.message}", file=sys.stderr)
            return False
        return True

    return 0 if replay(FailureQueue(url), rebuild, rebuilding.experiment_ids, tell) else 1
