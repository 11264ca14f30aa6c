"""From the images of an item to the child items that have to be."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from indexer.projection import child_items
from mlcore.db import keys
from mlcore.repos.runs.core import run_maps as run_children

TEXTS = st.dictionaries(st.sampled_from(["a", "b", "c/d e"]), st.sampled_from(["1", "2", ""]))
IMAGES = st.one_of(st.none(), st.fixed_dictionaries({"params": TEXTS, "tags": TEXTS}))
OWNER = ("1", "R")


def image(contents: dict[str, dict[str, str]] | None) -> dict[str, Any] | None:
    if contents is None:
        return None
    return {
        name: {"M": {key: {"S": text} for key, text in texts.items()}}
        for name, texts in contents.items()
    }


@given(before=IMAGES, after=IMAGES)
def test_only_differences_are_changes(before: Any, after: Any) -> None:
    changes = child_items.changes(image(before), image(after), run_children.MAPS)
    old, new = before or {}, after or {}
    assert changes == {
        (name, key)
        for name in ("params", "tags")
        for key in {*old.get(name, {}), *new.get(name, {})}
        if old.get(name, {}).get(key) != new.get(name, {}).get(key)
    }


@given(before=IMAGES, after=IMAGES, now=IMAGES)
def test_what_is_written_is_what_the_source_says_now(before: Any, after: Any, now: Any) -> None:
    changed = child_items.changes(image(before), image(after), run_children.MAPS)
    writes = child_items.children(image(now), OWNER, run_children.MAPS, changed)
    put = {
        (item["PK"]["S"], item["SK"]["S"]): item for item in (*writes.puts, *writes.careful_puts)
    }
    current = now or {}
    places = {"params": keys.run_param, "tags": keys.run_tag}
    for name, key in changed:
        item_key = places[name](*OWNER, key)
        text = current.get(name, {}).get(key)
        if text is None:
            assert item_key in writes.deletes
            assert item_key not in put
        else:
            assert put[item_key]["value"]["S"] == text
            assert item_key not in writes.deletes
    assert len(put) + len(writes.deletes) == len(changed)
    # A tag may have moved out of the item since it was read, so its child is not simply replaced.
    assert {item["type"]["S"] for item in writes.careful_puts} <= {"run_tag"}
    assert {item["type"]["S"] for item in writes.puts} <= {"run_param"}
