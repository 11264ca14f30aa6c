"""Finds entities of known kinds in a text: e-mail addresses, card numbers, IBANs, phone numbers, IP
addresses, AWS keys and bearer tokens.

Each expression takes time linear in the text, since none has a repeat inside of a repeat that could
match the same characters. A candidate counts only if its checksum or form holds.

Most texts have no entity. So each detector begins with a cheap search for something that all of its
entities contain: a character, a run of digits, a long word. Texts can be searched together if they
are joined by line feeds: this finds at least the entities of each single text.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Final

Range = tuple[int, int]
"""Begin and end of an entity in a text."""

_LOCAL_LENGTH: Final = 64
_LOCAL_BACKWARDS: Final = re.compile(r"[\w.+-]{1,64}")
_DOMAIN: Final = re.compile(r"[\w-]{1,63}(?:\.[\w-]{1,63})+")
_NUMBER: Final = re.compile(r"[\d+(][\d ./()+-]{6,}")
_ASCII_NUMBER: Final = re.compile("[0-9+(][0-9 ./()+-]{6,}")
"""Matches candidates for card numbers, phone numbers and IPv4 addresses. ``re`` is fast for an
expression that begins with a set of ASCII characters."""
_DIGIT_RUN: Final = re.compile(r"(?<![\d.])\d(?:[ -]?\d){12,}")
_DIGITS: Final = re.compile(r"\d+")
_CARD_DIGITS: Final = (13, 19)
_CARD_BEGINS: Final = frozenset((2, 3, 4, 5, 6))
_DOUBLED: Final = bytes.maketrans(b"0123456789", b"0246813579")
"""Translates a digit to the sum of the digits of its double, for the Luhn checksum."""
_IBAN_DIGITS: Final = re.compile(
    r"[0-9](?=[0-9][ -]?[A-Za-z0-9])(?<=(?<![A-Za-z0-9])[A-Za-z]{2}[0-9])"
)
"""The first of the two digits of an IBAN's checksum, after its country."""
_PHONE: Final = re.compile(
    r"(?<![\w+])(?<!\d\.)(?:\+|00)[1-9](?:[ ./-]?\(?\d\)?){6,14}(?!\d)"
    r"|(?<![\w.])(?:\(\d{3}\) ?|\d{3}[. -])\d{3}[. -]\d{4}(?![\w.]\d|\d)"
)
_IPV4: Final = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w]|\.\d)")
_IPV6: Final = re.compile(r"(?<![\w:.])[0-9A-Fa-f:]{3,39}(?:\.\d{1,3}){0,3}(?![\w:])")
_IPV6_COLONS: Final = 7
_COLON: Final = re.compile(":[0-9A-Fa-f]")
_AWS_KEYS: Final = ("AKIA", "ASIA", "ABIA", "ACCA")
_AWS_SECRET_LENGTH: Final = 40
_TOKENS: Final = ("eyJ", "sk-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "xox")
_TOKEN_LENGTH: Final = 16
"""Minimum length of a word that can contain an AWS key or a token, except a token after
``bearer``."""
SECONDS: Final = 1.0
"""Maximum processor time of a search for e-mail addresses, card numbers or IBANs in one text. After
it the search raises TimeoutError; no text that people write takes so long."""
_CANDIDATES: Final = 256
"""Number of candidates after which the processor time is checked again."""
_LOOK_AHEAD: Final = 2
"""Number of characters after a match that expressions for numbers check."""
_AWS_KEY: Final = re.compile(r"(?<![A-Za-z0-9])(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])")
_AWS_SECRET: Final = re.compile(r"(?<![A-Za-z0-9/+=_-])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=_-])")
_TOKEN: Final = re.compile(
    r"(?i:\bbearer\s{1,5})[A-Za-z0-9._~+/=-]{8,}"
    r"|\beyJ[A-Za-z0-9_-]{5,}\.eyJ[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*)?"
    r"|\b(?:sk-|gh[pousr]_|github_pat_|xox[abp]-)[A-Za-z0-9_-]{20,}"
)
_IBANS: Final = (
    "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 "
    "DK18 DO28 EE20 EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 "
    "IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 "
    "MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 "
    "SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20"
)
_IBAN_LENGTHS: Final[Mapping[str, int]] = {part[:2]: int(part[2:]) for part in _IBANS.split(" ")}
"""The number of characters of an IBAN by country."""


class _Clock:
    """Limits the processor time of one search."""

    __slots__ = ("_candidates", "_end")

    def __init__(self) -> None:
        self._candidates = 0
        self._end = time.thread_time() + SECONDS

    def check(self) -> None:
        """Counts a candidate. Raises TimeoutError if the search has taken more than SECONDS."""
        self._candidates += 1
        if self._candidates % _CANDIDATES == 0 and time.thread_time() > self._end:
            raise TimeoutError


class Searched:
    """A text, and the results of cheap searches for numbers and long words in it, which several
    redaction detectors share."""

    # Not functools.cached_property, which takes a lock before Python 3.12.
    __slots__ = ("_long_words", "_numbers", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._numbers: list[Range] | None = None
        self._long_words: str | None = None

    @property
    def numbers(self) -> list[Range]:
        """The (start, end) ranges of ``text`` that may hold numbers of seven characters or more."""
        if self._numbers is None:
            expression = _ASCII_NUMBER if self.text.isascii() else _NUMBER
            self._numbers = [match.span() for match in expression.finditer(self.text)]
        return self._numbers

    @property
    def long_words(self) -> str:
        """The words of at least _TOKEN_LENGTH characters in :attr:`text`, joined by newlines."""
        if self._long_words is None:
            words = self.text.split() if len(self.text) >= _TOKEN_LENGTH else ()
            self._long_words = "\n".join([word for word in words if len(word) >= _TOKEN_LENGTH])
        return self._long_words


def _emails(searched: Searched) -> Iterator[Range]:
    text, check, end = searched.text, _Clock().check, 0
    at = text.find("@")
    while at >= 0:
        check()
        before = text[max(end, at - _LOCAL_LENGTH) : at][::-1]
        local = _LOCAL_BACKWARDS.match(before)
        domain = None if local is None else _DOMAIN.match(text, at + 1)
        if local is not None and domain is not None:
            end = domain.end()
            yield at - local.end(), end
        at = text.find("@", at + 1)


def _cards(searched: Searched) -> Iterator[Range]:
    """Yields the card numbers in a text. Since other groups of digits may stand beside a card
    number, such as its year of expiry, every sequence of whole groups is tried."""
    text, check = searched.text, _Clock().check
    for run in _in_numbers(_DIGIT_RUN, searched, _CARD_DIGITS[0]):
        groups = [match.span() for match in _DIGITS.finditer(text, *run)]
        first = 0
        while first < len(groups):
            if int(text[groups[first][0]]) not in _CARD_BEGINS:  # also digits of other scripts
                first += 1
                continue
            check()
            end = _card_end(text, groups[first : first + _CARD_DIGITS[1]])
            if end is None:
                first += 1
            else:
                yield groups[first][0], groups[first + end][1]
                first += end + 1


def _card_end(text: str, groups: list[Range]) -> int | None:
    """Returns the index of the last group of the longest card number that begins with the first
    group; None if no card number begins there."""
    digits, end = "", None
    for index, group in enumerate(groups):
        digits += text[slice(*group)]
        if len(digits) > _CARD_DIGITS[1]:
            break
        if len(digits) >= _CARD_DIGITS[0] and _has_luhn(digits):
            end = index
    return end


def _has_luhn(digits: str) -> bool:
    ascii_digits = digits if digits.isascii() else "".join(str(int(digit)) for digit in digits)
    last_first = ascii_digits.encode()[::-1]
    doubled = last_first[1::2].translate(_DOUBLED)
    return (sum(last_first[::2]) + sum(doubled) - len(digits) * ord("0")) % 10 == 0


def _ibans(searched: Searched) -> Iterator[Range]:
    text, check = searched.text, _Clock().check
    for match in _IBAN_DIGITS.finditer(text):
        check()
        start = match.start() - 2
        length = _IBAN_LENGTHS.get(text[start : start + 2].upper())
        if length is None:
            continue
        iban, end = "", start
        while end < len(text) and len(iban) < length:
            character = text[end]
            if character.isascii() and character.isalnum():
                iban += character
            elif character not in " -" or text[end - 1] in " -":
                break
            end += 1
        rest = text[end : end + 1]
        if len(iban) == length and not rest.isalnum():
            number = "".join(str(int(character, 36)) for character in iban[4:] + iban[:4])
            if int(number) % 97 == 1:
                yield start, end


def _phones(searched: Searched) -> Iterator[Range]:
    return _in_numbers(_PHONE, searched)


def _in_numbers(
    expression: re.Pattern[str], searched: Searched, length: int = 0
) -> Iterator[Range]:
    """Yields the matches of an expression in the ranges :attr:`Searched.numbers` that have at least
    ``length`` characters."""
    for begin, end in searched.numbers:
        if end - begin >= length:
            for match in expression.finditer(searched.text, begin, end + _LOOK_AHEAD):
                yield match.span()


def _addresses(searched: Searched) -> Iterator[Range]:
    text = searched.text
    if "." in text:
        for begin, end in _in_numbers(_IPV4, searched):
            if _is_address(IPv4Address, text[begin:end]):
                yield begin, end
    if "::" in text or len(_COLON.findall(text)) >= _IPV6_COLONS:
        for match in _IPV6.finditer(text):
            address = match.group()
            trimmed = address if address.endswith("::") else address.rstrip(":")
            if any(map(str.isdigit, trimmed)) and _is_address(IPv6Address, trimmed):
                yield match.start(), match.start() + len(trimmed)


def _is_address(kind: type[IPv4Address | IPv6Address], text: str) -> bool:
    try:
        kind(text)
    except AddressValueError:
        return False
    return True


def _aws_keys(searched: Searched) -> Iterator[Range]:
    text, words = searched.text, searched.long_words
    if any(prefix in words for prefix in _AWS_KEYS):
        yield from (match.span() for match in _AWS_KEY.finditer(text))
    long_words = [word for word in words.split() if len(word) >= _AWS_SECRET_LENGTH]
    if not any(map(_AWS_SECRET.search, long_words)):
        return
    for match in _AWS_SECRET.finditer(text):
        secret = match.group()
        # A path, a digest in hexadecimal or a word of one case is no secret access key.
        if (
            any(map(str.isupper, secret))
            and any(map(str.islower, secret))
            and any(map(str.isdigit, secret))
        ):
            yield match.span()


def _tokens(searched: Searched) -> Iterator[Range]:
    text = searched.text
    if "bearer" in text.lower() or any(prefix in searched.long_words for prefix in _TOKENS):
        yield from (match.span() for match in _TOKEN.finditer(text))


DETECTORS: Final[Mapping[str, Callable[[Searched], Iterator[Range]]]] = {
    "email": _emails,
    "credit_card": _cards,
    "iban": _ibans,
    "phone": _phones,
    "ip_address": _addresses,
    "aws_key": _aws_keys,
    "bearer_token": _tokens,
}
"""By the kind of entity, a function that yields the ranges of such entities in a text. Ranges of
``aws_key`` are not in order, because secrets follow all access keys."""


def replaced(kind: str, text: str, replacement: str) -> str:
    """Returns the text with each entity of the kind (such as an e-mail address) replaced by
    ``replacement``. Raises TimeoutError after SECONDS of processor time."""
    parts: list[str] = []
    end = 0
    # Sorted, because the detector of AWS keys yields all access keys before the secrets.
    for begin, stop in sorted(DETECTORS[kind](Searched(text))):
        if begin >= end:
            parts += (text[end:begin], replacement)
            end = stop
    return "".join((*parts, text[end:])) if parts else text
