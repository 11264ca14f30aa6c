"""Which texts a pattern finds."""

from __future__ import annotations

from mlcore.search import text
from mlcore.search.lookups import FullTextLookup
from mlcore.search.text import IndexToken


def found_by(lookup: FullTextLookup, field: str, token: IndexToken) -> bool:
    """Whether a lookup comes to a token of a text: as the index holds it."""
    word = token.text
    if not lookup.test()(word):
        return False
    if lookup.exact is not None or lookup.begin is not None:
        return word == lookup.exact if lookup.begin is None else word.startswith(lookup.begin)
    held = {
        trigram
        for trigram in text.trigrams_of_token(token)
        if field != "content" or text.is_indexed_in_contents(trigram)
    }
    return held.issuperset(lookup.trigrams) or (lookup.numbers and text.is_number(word))
