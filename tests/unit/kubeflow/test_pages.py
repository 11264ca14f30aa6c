"""Pages: whatever the order and the size, they are the list, and their tokens do not change."""

from __future__ import annotations

import base64
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from mlcore.errors import InvalidParameterValue
from mlcore.kubeflow import pages
from mlcore.kubeflow.entity import Entity
from mlcore.kubeflow.kinds import REGISTERED_MODEL

TIMES = st.integers(0, 3) | st.integers(0, 2**45)


def entity(number: int, created: int = 0, updated: int = 0, description: str = "") -> Entity:
    return Entity(
        REGISTERED_MODEL.name,
        number,
        f"n{number}",
        created,
        updated,
        description,
        None,
        {},
        {"state": "LIVE"},
    )


LISTS = st.lists(
    st.builds(entity, st.integers(1, 2**31 - 1), TIMES, TIMES),
    max_size=12,
    unique_by=lambda item: item.id,
)
POSITIONS: dict[str, Any] = {
    "ID": lambda item: item.id,
    "CREATE_TIME": lambda item: (item.create_time, item.id),
    "LAST_UPDATE_TIME": lambda item: (item.update_time, item.id),
}


def read(
    listed: list[Entity], arguments: dict[str, str]
) -> tuple[list[list[str]], list[str], list[int]]:
    """As the client reads: names by page, the tokens, the sizes told."""
    names, tokens, sizes = [], [], []
    token = ""
    while True:
        order = pages.order_of({**arguments, "nextPageToken": token})
        page = pages.page(order.sorted(listed), order, "v1")
        again = pages.page(order.sorted(reversed(listed)), order, "v1")
        assert page == again
        names.append([item["name"] for item in page["items"]])
        sizes.append(page["size"])
        token = page["nextPageToken"]
        tokens.append(token)
        if not token:
            return names, tokens, sizes


@given(
    LISTS,
    st.sampled_from([*POSITIONS, "nothing", ""]),
    st.sampled_from(["ASC", "DESC", "", "desc"]),
    st.integers(1, 5),
)
def test_pages_are_the_list(listed: list[Entity], by: str, direction: str, size: int) -> None:
    names, tokens, sizes = read(
        listed, {"orderBy": by, "sortOrder": direction, "pageSize": str(size)}
    )
    down = direction.upper() == "DESC"
    expected = sorted(listed, key=POSITIONS.get(by, POSITIONS["ID"]), reverse=down)
    assert [name for page in names for name in page] == [item.name for item in expected]
    assert [len(page) for page in names] == sizes
    assert all(count == size for count in sizes[:-1])
    assert len(set(tokens)) == len(tokens)


@given(LISTS, st.sampled_from(["", "0", "-1", "-7"]))
def test_without_a_size_all_comes(listed: list[Entity], size: str) -> None:
    names, tokens, _ = read(listed, {"pageSize": size})
    assert (len(names), tokens) == (1, [""])
    assert len(names[0]) == len(listed)


@given(LISTS, st.integers(1, 4), st.data())
def test_a_list_that_changes_between_pages(
    listed: list[Entity], size: int, data: st.DataObject
) -> None:
    """What stays comes once, whatever comes or goes meanwhile."""
    order = pages.order_of({"pageSize": str(size)})
    first = pages.page(order.sorted(listed), order, "v1")
    gone = data.draw(st.sets(st.integers(0, 11)))
    stays = [item for index, item in enumerate(listed) if index not in gone]
    token = first["nextPageToken"]
    seen = [item["name"] for item in first["items"]]
    while token:
        order = pages.order_of({"pageSize": str(size), "nextPageToken": token})
        page = pages.page(order.sorted(stays), order, "v1")
        seen += [item["name"] for item in page["items"]]
        token = page["nextPageToken"]
    assert len(seen) == len(set(seen))
    assert {stay.name for stay in stays} <= set(seen)


def test_a_page_ends_before_it_is_too_large_for_a_response() -> None:
    size = pages.RESPONSE_BYTES // 5
    listed = [entity(number, description="x" * size) for number in range(1, 13)]
    names, tokens, sizes = read(listed, {})
    assert [name for page in names for name in page] == [item.name for item in listed]
    assert len(tokens) > 1
    assert max(sizes) * size < 2 * pages.RESPONSE_BYTES
    alone, _, _ = read([entity(1, description="x" * 2 * pages.RESPONSE_BYTES)], {})
    assert alone == [["n1"]]


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    "token",
    [
        *(
            "%",
            "MTo",
            "é",
            encoded("x"),
            encoded("1"),
            encoded("1:"),
            encoded(":1"),
            encoded("a:b"),
        ),
        *(encoded("1:1:1"), encoded("١:1"), encoded("1" * 30 + ":1"), encoded("1:2") * 400),
    ],
)
def test_tokens_that_are_none(token: str) -> None:
    with pytest.raises(InvalidParameterValue, match="invalid nextPageToken"):
        pages.order_of({"nextPageToken": token})


@given(st.text(max_size=40))
def test_any_token_is_one_or_refused(token: str) -> None:
    try:
        order = pages.order_of({"nextPageToken": token})
    except InvalidParameterValue:
        return
    assert order.after is None or len(order.after) == 2
