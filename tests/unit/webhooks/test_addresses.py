import ipaddress
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcore.errors import InvalidParameterValue
from mlcore.public_addresses import is_public
from mlcore.webhooks.addresses import check_url, destination
from mlcore.webhooks.environment import webhook_settings

CLOSED = [
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
    *("192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/4", "240.0.0.0/4", "192.0.2.0/24"),
    *("192.0.0.0/24", "192.88.99.0/24"),
]
CLOSED_V6 = [
    *("::/128", "::1/128", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8", "2001:db8::/32"),
    *("64:ff9b:1::/48", "100::/64", "3fff::/20", "5f00::/16", "2001::/32"),
]


def within(*networks: str) -> st.SearchStrategy[Any]:
    def addresses_of(text: str) -> st.SearchStrategy[Any]:
        network = ipaddress.ip_network(text)
        first, last = int(network[0]), int(network[-1])
        return st.integers(first, last).map(type(network[0]))

    return st.sampled_from(networks).flatmap(addresses_of)


def written(address: ipaddress.IPv4Address) -> st.SearchStrategy[Any]:
    """All IPv6 forms that lead to the IPv4 address."""
    number = int(address)
    return st.sampled_from(
        [
            address,
            ipaddress.IPv6Address((0xFFFF << 32) + number),
            ipaddress.IPv6Address(number),
            ipaddress.IPv6Address((0x64FF9B << 96) + number),
            ipaddress.IPv6Address((0xFFFF << 48) + number),
            ipaddress.IPv6Address((0x2002 << 112) + (number << 80) + 1),
        ]
    )


@given(within(*CLOSED).flatmap(written) | within(*CLOSED_V6))
def test_no_form_of_a_closed_address_is_public(address: Any) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("text", ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "::ffff:8.8.8.8"])
def test_the_open_internet_is_public(text: str) -> None:
    assert is_public(ipaddress.ip_address(text))


class Names:
    """Answers for DNS; ``asked`` counts."""

    def __init__(self) -> None:
        self.answers: dict[str, list[list[str]]] = {}
        self.asked = 0

    def getaddrinfo(self, host: str, *_: Any, **__: Any) -> list[Any]:
        self.asked += 1
        try:
            results = [str(ipaddress.ip_address(host))]
        except ValueError:
            answers = self.answers.get(host)
            if answers is None:
                raise socket.gaierror(-2, "Name or service not known") from None
            results = answers.pop(0) if len(answers) > 1 else answers[0]
        return [(0, 0, 0, "", (address, 0)) for address in results]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    made = Names()
    monkeypatch.setattr(socket, "getaddrinfo", made.getaddrinfo)
    return made


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Of AWS, unless a test decides otherwise."""
    for name in ("MLFLOW_WEBHOOK_ALLOWED_SCHEMES", "MLFLOW_WEBHOOK_ALLOW_PRIVATE_IPS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("WEBHOOK_ALLOW_LOOPBACK", raising=False)
    webhook_settings.cache_clear()
    yield monkeypatch
    webhook_settings.cache_clear()


def test_one_closed_address_among_many_closes_the_name(names: Names) -> None:
    names.answers["mixed.example"] = [["8.8.8.8", "169.254.169.254"]]
    with pytest.raises(InvalidParameterValue, match=r"resolves to 169\.254\.169\.254"):
        check_url("https://mixed.example/x")


def test_the_connection_goes_to_the_address_that_was_checked(names: Names) -> None:
    """A name that answers otherwise the second time is not asked a second time."""
    names.answers["rebinding.example"] = [["8.8.8.8"], ["127.0.0.1"]]
    where = destination("https://user:p%40ss@rebinding.example:8443/a b?c=é#d")
    assert where.address == "8.8.8.8"
    assert where.host == "rebinding.example"
    assert where.host_header == "rebinding.example:8443"
    assert where.target == "/a%20b?c=%C3%A9"
    assert where.credentials == ("user", "p@ss")
    assert names.asked == 1
    with pytest.raises(InvalidParameterValue):
        destination("https://rebinding.example/")


def test_a_laptop_reaches_itself_by_plain_http_and_nothing_else(
    names: Names, settings: pytest.MonkeyPatch
) -> None:
    settings.setenv("WEBHOOK_ALLOW_LOOPBACK", "true")
    webhook_settings.cache_clear()
    names.answers |= {
        "localhost": [["127.0.0.1", "::1"]],
        "both.example": [["127.0.0.1", "8.8.8.8"]],
    }
    assert destination("http://localhost:8080/hook").address == "127.0.0.1"
    for url in (
        "http://both.example/",
        "http://8.8.8.8/",
        "http://10.0.0.1/",
        "http://none.example/",
    ):
        with pytest.raises(InvalidParameterValue, match="scheme: 'http'"):
            check_url(url)
    with pytest.raises(InvalidParameterValue, match="non-public"):
        check_url("https://127.0.0.1/")


def test_the_settings_of_mlflow_open_everything(names: Names, settings: pytest.MonkeyPatch) -> None:
    settings.setenv("MLFLOW_WEBHOOK_ALLOWED_SCHEMES", "http, https")
    settings.setenv("MLFLOW_WEBHOOK_ALLOW_PRIVATE_IPS", "true")
    webhook_settings.cache_clear()
    check_url("http://never-asked.example/")
    assert names.asked == 0
    assert destination("http://10.0.0.1:81/").host_header == "10.0.0.1:81"
    assert destination("https://[fd00::1]/").host_header == "[fd00::1]"
