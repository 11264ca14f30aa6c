"""A caller's address behind CloudFront and without it; no header that a caller sends changes it."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from authorizer.caller_address import ORIGIN_WORD, viewer_address
from mlcore.http.cloudfront_bypass import ORIGIN_HEADER

WORD = "8d5c1c1e-0000-1111-2222-0a58a9feac02"
SETTINGS = {ORIGIN_WORD: WORD}
VIEWER, EDGE = "192.0.2.7", "203.0.113.9"

ADDRESSES = st.ip_addresses().map(str)
FORGED = st.dictionaries(
    st.sampled_from(["x-forwarded-for", ORIGIN_HEADER, "cloudfront-viewer-address", "forwarded"]),
    st.one_of(
        ADDRESSES,
        st.lists(ADDRESSES).map(", ".join),
        st.sampled_from([",", VIEWER, EDGE, f"{VIEWER}, {EDGE}", "unknown", WORD[:-1], ""]),
        st.text(max_size=20),
    ),
)


def at_the_api(headers: dict[str, str], peer: str) -> dict[str, str]:
    """As API Gateway passes the headers of a peer."""
    before = headers.get("x-forwarded-for")
    return {**headers, "x-forwarded-for": f"{before}, {peer}" if before else peer}


def through_cloudfront(headers: dict[str, str], viewer: str) -> dict[str, str]:
    """The distribution's own header replaces one of the viewer's."""
    before = headers.get("x-forwarded-for")
    passed = {**headers, "x-forwarded-for": f"{before},{viewer}" if before else viewer}
    return {**passed, ORIGIN_HEADER: WORD}


@given(FORGED, ADDRESSES, ADDRESSES)
@example({"x-forwarded-for": EDGE}, VIEWER, EDGE)
@example({}, EDGE, EDGE)
def test_behind_cloudfront(forged: dict[str, str], viewer: str, edge: str) -> None:
    sent = at_the_api(through_cloudfront(forged, viewer), edge)
    assert viewer_address(edge, sent, SETTINGS) == viewer


@given(FORGED, ADDRESSES)
@example({"x-forwarded-for": VIEWER, ORIGIN_HEADER: ""}, EDGE)
def test_past_cloudfront(forged: dict[str, str], caller: str) -> None:
    assert viewer_address(caller, at_the_api(forged, caller), SETTINGS) == caller
    word = {**forged, ORIGIN_HEADER: ""}
    assert viewer_address(caller, at_the_api(word, caller), {ORIGIN_WORD: ""}) == caller
    assert viewer_address(caller, at_the_api(forged, caller), {}) == caller


def test_what_is_no_address_is_not_believed() -> None:
    for hops in ("", EDGE, f"nonsense, {EDGE}", f"nonsense,{EDGE}"):
        headers = {"x-forwarded-for": hops, ORIGIN_HEADER: WORD}
        assert viewer_address(EDGE, headers, SETTINGS) == EDGE
