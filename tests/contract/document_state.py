"""What the items of a document must be."""

from __future__ import annotations

from mlcore.db.attribute_types import texts_in
from tests.contract.conftest import Store


def placed_once(store: Store, experiment_id: str, run_id: str = "") -> None:
    """No key of the entity is both in its item and outside, and what overflows is announced."""
    inline: dict[str, set[str]] = {}
    outside: dict[str, set[str]] = {}
    overflow: set[str] = set()
    kinds = {
        "run_metric": "metrics",
        "run_param": "params",
        "run_tag": "tags",
        "experiment_tag": "tags",
    }
    for item in store.items_of(experiment_id, run_id):
        kind = item["type"]["S"]
        if kind in {"run", "experiment"}:
            overflow = set(item.get("overflow", {}).get("S", "").split())
            for name in ("metrics", "params", "tags"):
                inline[name] = set(texts_in(item.get(name, {"M": {}})))
        elif "outside" in item:
            outside.setdefault(kinds[kind], set()).add(item["key"]["S"])
    for name, keys in outside.items():
        assert name in overflow
        assert not keys & inline[name]
