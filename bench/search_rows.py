"""The runs of the search bench, the same for every side; writes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from mlcore.ids import new_ulid

MATCHES = 200
"""Runs with ``acc`` above 0.95, at every size; a quarter of them has ``lr`` 0.01."""
NEEDLES = 50
"""Runs whose name begins with ``needle``, and as many whose owner's name holds ``ann``."""
OWNERS = ("Hannah Arendt", "joANN", "ann", "Annabel Lee", "Marianne")
OTHERS = ("bob", "Carol King", "dave", "Erin", "frank", "Grace H", "heidi")


class Row(NamedTuple):
    """One run; its start time is its position."""

    position: int
    run_id: str
    name: str
    metrics: dict[str, float]
    params: dict[str, str]
    tags: dict[str, str]


def rows(size: int) -> Iterator[Row]:
    for position in range(size):
        rest = position - (size - MATCHES)
        acc = 0.95 + (rest + 1) * 0.0002 if rest >= 0 else 0.95 * position / size
        among = position // (size // NEEDLES)
        is_owned = position % (size // NEEDLES) == 7 and among < NEEDLES
        name = f"needle-{position}" if position < NEEDLES else f"run-{position}"
        yield Row(
            position,
            new_ulid(),
            name,
            {"acc": acc, "loss": 1 / (1 + position % 97)},
            {
                "lr": ("0.1", "0.01", "0.001", "1")[position % 4],
                "depth": str(position % 10),
                "batch": str(2 ** (position % 6)),
                "opt": ("sgd", "adam", "lamb")[position % 3],
                "seed": str(position),
            },
            {
                "mlflow.runName": name,
                "owner": OWNERS[among % 5] if is_owned else OTHERS[position % 7],
            },
        )


SEARCHES: dict[str, dict[str, Any]] = {
    "newest 100": {},
    "top 100 by a metric": {"order_by": ["metrics.acc DESC"]},
    "metric and param, 50 match": {"filter": "metrics.acc > 0.95 AND params.lr = '0.01'"},
    "tag holds a text, 50 match": {"filter": "tags.owner ILIKE '%ann%'"},
    "name prefix, 50 match": {"filter": "run_name LIKE 'needle%'"},
    "status, none match": {"filter": "status = 'KILLED'"},
}
