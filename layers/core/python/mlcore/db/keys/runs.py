"""Keys of runs in their experiment's partition, and of the items that find them by id.

A run's children are the items of its metrics, params, tags and so on. An item with points of
metrics is a *batch* (the points of one request), a *pack* (points of one metric) or names a file
with the points of many batches. By the distance from its first point to its last one, each batch
or pack has a class, called *span* (:data:`mlcore.repos.runs.history.length_classes.SPANS`).
"""

from __future__ import annotations

from collections.abc import Iterable

from mlcore.db.keys.experiments import EXPERIMENT
from mlcore.db.keys.pattern import UPPER_BOUND, Key, Pattern, remembering
from mlcore.db.sortable import parse_double

_EXP = "EXP#<experiment_id>"

RUN = Pattern("run", _EXP, "R#<run_id>", "a run with its latest metrics, params and tags")
RUN_METRIC = Pattern("run_metric", _EXP, "R#<run_id>#METRIC#<key>", "latest point", "overflow")
RUN_METRIC_HISTORY = Pattern(
    "run_metric_history",
    _EXP,
    "R#<run_id>#MHIST#<key>#<step>#<ts>#<suffix>",
    "pack of points of one metric; step and ts are the first one's",
    "indexer",
)
RUN_METRIC_BATCH = Pattern(
    "run_metric_batch",
    _EXP,
    "R#<run_id>#MBATCH#<batch_id>",
    "points that were logged together, until the indexer packs them",
)
RUN_METRIC_FILE = Pattern(
    "run_metric_file",
    _EXP,
    "R#<run_id>#MBFILE#<file_id>",
    "where in the artifact store points of many batches are; sorts after the batches",
    "indexer",
)
RUN_PARAM = Pattern("run_param", _EXP, "R#<run_id>#PARAM#<key>", "one param", "overflow")
RUN_TAG = Pattern("run_tag", _EXP, "R#<run_id>#TAG#<key>", "one tag", "overflow")
RUN_INPUT = Pattern(
    "run_input", _EXP, "R#<run_id>#INPUT#<name>#<digest>", "a dataset that the run used", "overflow"
)
RUN_LOGGED_MODEL = Pattern(
    "run_logged_model",
    _EXP,
    "R#<run_id>#LM#<model_name>",
    "a model that the run logged",
    "overflow",
)
RUN_REF = Pattern("run_ref", "RUN#<run_id>", "RUN#REF", "the run's experiment, read consistently")
LSI2_METRIC_HISTORY = Pattern(
    "lsi2_metric_history",
    _EXP,
    "MHIST#<run_id>#<key>#<span>#<first>#<last>#<number>#<double>",
    "points of one metric by their first point, separately for each class of spans",
    index="LSI2",
)

RUN_INDEX_PATTERNS = (LSI2_METRIC_HISTORY,)

RUN_PATTERNS = (
    RUN,
    RUN_METRIC,
    RUN_METRIC_HISTORY,
    RUN_METRIC_BATCH,
    RUN_METRIC_FILE,
    RUN_PARAM,
    RUN_TAG,
    RUN_INPUT,
    RUN_LOGGED_MODEL,
    RUN_REF,
)

_partition = remembering(EXPERIMENT.pk.build)


def run(experiment_id: str, run_id: str) -> Key:
    return Key(_partition(experiment_id), RUN.sk.build(run_id))


def run_sort_keys(run_ids: Iterable[str]) -> list[str]:
    """Returns the sort keys of the runs' own items, ``R#<run_id>``, in the order of the ids."""
    return list(map(RUN.sk.build, run_ids))


def run_prefix(run_id: str = "") -> str:
    """Returns the prefix of the sort keys of a run's children, without the run itself; without an
    id, of all runs and their children."""
    return RUN.sk.build(run_id) + "#" if run_id else RUN.sk.prefix()


def run_ref(run_id: str) -> Key:
    return Key(RUN_REF.pk.build(run_id), RUN_REF.sk.text)


def run_metric(experiment_id: str, run_id: str, key: str) -> Key:
    return Key(_partition(experiment_id), RUN_METRIC.sk.build(run_id, key))


def run_metric_history(
    experiment_id: str, run_id: str, key: str, step: int, timestamp: int, suffix: str
) -> Key:
    """Returns the key of a pack: an item with several points of one metric of a run. ``step`` and
    ``timestamp`` are those of its first point; ``suffix`` distinguishes packs that begin with the
    same step and timestamp."""
    sk = RUN_METRIC_HISTORY.sk.build(run_id, key, step, timestamp, suffix)
    return Key(_partition(experiment_id), sk)


def run_metric_history_prefix(run_id: str, key: str) -> str:
    return RUN_METRIC_HISTORY.sk.prefix(run_id, key)


def lsi2_metric_history(
    run_id: str, key: str, span: int, first: str, last: str, number: int, value: float
) -> str:
    """Returns the LSI2 sort key of a pack: an item with several points of one metric of a run.

    Args:
        span: the class of the distance from the first point to the last one, an index of ``SPANS``.
        first, last: positions of these points, as texts
            (:mod:`mlcore.repos.runs.history.point_positions`).
        number: how many points the pack has.
        value: the value of the first point.
    """
    return LSI2_METRIC_HISTORY.sk.build(run_id, key, f"{span:02d}", first, last, number, value)


def lsi2_metric_history_from(run_id: str, key: str, span: int, first: str) -> tuple[str, str]:
    """Returns inclusive bounds of the LSI2 sort keys of those packs of a run's metric (items with
    several points) whose first point is at the position ``first`` or later.

    Args:
        span: a class of distances, as of :func:`lsi2_metric_history`. Only packs whose distance
            from the first point to the last one is in this class are within the bounds.
    """
    prefix = LSI2_METRIC_HISTORY.sk.prefix(run_id, key, f"{span:02d}")
    return prefix + first, prefix + UPPER_BOUND


def parse_lsi2_metric_history(sk: str) -> tuple[str, str, int, float]:
    """Returns (first position, last position, number of points, value of the first point) from the
    LSI2 sort key of a pack, an item with several points of one metric."""
    first, last, number, value = sk.rsplit("#", 4)[1:]
    return first, last, int(number), parse_double(value)


def run_metric_batch(experiment_id: str, run_id: str, batch_id: str) -> Key:
    return Key(_partition(experiment_id), RUN_METRIC_BATCH.sk.build(run_id, batch_id))


def run_metric_batch_prefix(run_id: str) -> str:
    return RUN_METRIC_BATCH.sk.prefix(run_id)


def run_metric_file(experiment_id: str, run_id: str, file_id: str) -> Key:
    return Key(_partition(experiment_id), RUN_METRIC_FILE.sk.build(run_id, file_id))


def run_metric_file_prefix(run_id: str) -> str:
    return RUN_METRIC_FILE.sk.prefix(run_id)


def run_metric_batches(run_id: str) -> tuple[str, str]:
    """Returns inclusive bounds of the sort keys of a run's batches (the metric points of one
    request each) and, after them, of the items that name the files to which batches are moved. So a
    query that misses a batch because it is being moved returns its file."""
    return RUN_METRIC_BATCH.sk.prefix(run_id), RUN_METRIC_FILE.sk.prefix(run_id) + UPPER_BOUND


def batch_id(span: int, first: str, digest: str) -> str:
    """Returns the id of a batch: the item with the metric points of one request. Ids order a run's
    batches by ``span``, then by ``first``.

    Args:
        span: the class of the distance from the first point to the last one.
        first: position of the first point, without its value.
        digest: distinguishes batches with the same span and first point.
    """
    return f"{span:02d}{first}{digest}"


def parse_batch_id(sk: str) -> tuple[int, str]:
    """Returns (span, first) from the sort key of a batch (the metric points of one request): the
    class of the distance from its first point to its last one, and the position of the first point
    without its value."""
    batch = sk.rpartition("#")[2]
    return int(batch[:2]), batch[2:34]


def run_metric_batch_from(run_id: str, span: int, first: str) -> tuple[str, str]:
    """Returns inclusive bounds of the sort keys of those batches of a run (metric points of one
    request each) whose first point is at the position ``first`` or later.

    Args:
        span: a class of distances, as of :func:`batch_id`. Only batches whose distance from the
            first point to the last one is in this class are within the bounds.
    """
    prefix = RUN_METRIC_BATCH.sk.prefix(run_id) + f"{span:02d}"
    return prefix + first[:32], prefix + UPPER_BOUND


def run_param(experiment_id: str, run_id: str, key: str) -> Key:
    return Key(_partition(experiment_id), RUN_PARAM.sk.build(run_id, key))


def run_tag(experiment_id: str, run_id: str, key: str) -> Key:
    return Key(_partition(experiment_id), RUN_TAG.sk.build(run_id, key))


def run_input(experiment_id: str, run_id: str, name: str, digest: str) -> Key:
    return Key(_partition(experiment_id), RUN_INPUT.sk.build(run_id, name, digest))


def run_logged_model(experiment_id: str, run_id: str, model_name: str) -> Key:
    return Key(_partition(experiment_id), RUN_LOGGED_MODEL.sk.build(run_id, model_name))


_CHILDREN = {
    "METRIC": RUN_METRIC,
    "MHIST": RUN_METRIC_HISTORY,
    "MBATCH": RUN_METRIC_BATCH,
    "MBFILE": RUN_METRIC_FILE,
    "PARAM": RUN_PARAM,
    "TAG": RUN_TAG,
    "INPUT": RUN_INPUT,
    "LM": RUN_LOGGED_MODEL,
}


def run_child_prefix(run_id: str, kind: str) -> str:
    """Returns the prefix of the sort keys of a run's children of one kind: METRIC, MHIST, MBATCH,
    MBFILE, PARAM, TAG, INPUT or LM."""
    return _CHILDREN[kind].sk.prefix(run_id)
