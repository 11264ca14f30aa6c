"""CloudFront sends every route of the API to the API, with its methods and without a cache."""

from __future__ import annotations

import fnmatch
import re
from typing import Any

import pytest

from local.cloudformation import Resolver
from local.http.ui_files import DASHBOARD_PAGES, DASHBOARDS, PAGES
from mlcore.http.cloudfront_bypass import ORIGIN_HEADER, REQUIRED_WORD
from tests.arch import project

CONFIG = project.resources("AWS::CloudFront::Distribution")["UiDistribution"]["DistributionConfig"]
UNCACHED = "4135ea2d-6df8-44a3-9df3-4b5a84be39ad"
"""AWS's managed policy CachingDisabled."""
OUTSIDE = {"$default", "ANY /readyz/{proxy+}"}
"""Unknown paths, which are files of the UI on this origin, and Kubeflow's probe of the API."""
MOST_BEHAVIOURS = 25
"""Of one distribution, by CloudFront's quotas."""


def behaviour(path: str) -> Any:
    """Returns the behaviour that CloudFront chooses for a path: the first whose pattern matches,
    else the default one."""
    for candidate in CONFIG["CacheBehaviors"]:
        if fnmatch.fnmatchcase(path, candidate["PathPattern"]):
            return candidate
    return CONFIG["DefaultCacheBehavior"]


@pytest.mark.parametrize("key", sorted(set(project.routes()) - OUTSIDE))
@pytest.mark.parametrize("root", ["api", "ajax-api"])
def test_a_route_is_reached_through_the_distribution(key: str, root: str) -> None:
    """A route may be one for both roots."""
    method, path = key.replace("{root}", root).split()
    chosen = behaviour(re.sub(r"\{\w+\+\}", "a/b", re.sub(r"\{\w+\}", "a", path)))
    assert chosen["TargetOriginId"] == ("streams" if path.startswith("/gateway/") else "api")
    assert chosen["CachePolicyId"] == UNCACHED
    assert set(chosen["AllowedMethods"]) >= (
        {"GET", "HEAD", "OPTIONS", "PUT", "PATCH", "POST", "DELETE"}
        if method == "ANY"
        else {method}
    )


def test_a_firewall_sees_every_request_where_it_is_asked_to() -> None:
    """The word that functions ask for is the one that the distribution adds."""
    template = project.template()

    def given(**parameters: str) -> Resolver:
        return Resolver(template, parameters={"Authentication": "basic", **parameters})

    arn = "arn:aws:wafv2:us-east-1:1:global/webacl/name/id"
    assert given(WebAclArn=arn).resolve(CONFIG)["WebACLId"] == arn
    assert "WebACLId" not in given().resolve(CONFIG)
    variables = template["Globals"]["Function"]["Environment"]["Variables"]
    for only, ui, wanted in (
        ("true", "true", True),
        ("true", "false", False),
        ("false", "true", False),
    ):
        resolver = given(OnlyThroughUi=only, Ui=ui)
        [api] = [origin for origin in resolver.resolve(CONFIG["Origins"]) if origin["Id"] == "api"]
        [header] = api["OriginCustomHeaders"]
        assert header["HeaderName"] == ORIGIN_HEADER
        word = resolver.resolve(variables)[REQUIRED_WORD]
        assert word == (header["HeaderValue"] if wanted else "")


def test_routes_outside_the_distribution_exist() -> None:
    assert set(project.routes()) >= OUTSIDE


def test_every_behaviour_of_the_api_serves_a_route() -> None:
    paths = [key.split()[-1].replace("{proxy+}", "a") for key in project.routes()]
    patterns = [
        cache_behavior["PathPattern"]
        for cache_behavior in CONFIG["CacheBehaviors"]
        if cache_behavior["TargetOriginId"] == "api"
    ]
    for pattern in patterns:
        assert any(fnmatch.fnmatchcase(path, pattern) for path in paths), pattern
    assert len(CONFIG["CacheBehaviors"]) <= MOST_BEHAVIOURS


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_a_file_behind_the_login(path: str) -> None:
    """All pages get the same headers, and a browser that is not signed in is stopped before."""
    chosen = behaviour(path)
    assert (chosen["TargetOriginId"], "PathPattern" in chosen) == ("files", False)
    for parameters in (
        {"Authentication": "basic"},
        {"Authentication": "oidc", "OidcClientId": "c"},
    ):
        resolved = Resolver(project.template(), parameters=parameters).resolve(chosen)
        assert [
            function_association["EventType"]
            for function_association in resolved["FunctionAssociations"]
        ] == ["viewer-request"]
    assert chosen["ResponseHeadersPolicyId"] == {"Ref": "UiHeaders"}


def test_our_pages_have_one_content_policy() -> None:
    policy = re.compile(r'http-equiv="Content-Security-Policy" content="([^"]*)"')
    pages = sorted(DASHBOARDS.glob("*.html"))
    assert {"keys.html", "readers.html", "index.html", "trash.html", "start.html"} <= {
        page.name for page in pages
    }
    assert "dashboards/keys" in DASHBOARD_PAGES
    results = {page.name: policy.findall(page.read_text(encoding="utf-8")) for page in pages}
    assert set(map(tuple, results.values())) == {
        (
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
            "img-src 'self'; base-uri 'none'; form-action 'none'",
        )
    }
    scripts = "".join(script.read_text(encoding="utf-8") for script in DASHBOARDS.glob("*.js"))
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write", scripts)
