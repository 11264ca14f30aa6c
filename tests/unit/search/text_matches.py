"""Which texts a pattern finds."""

from __future__ import annotations

from mlcore.search import text_tokens
from mlcore.search.text_lookups import FullTextLookup
from mlcore.search.text_tokens import IndexToken


def found_by(lookup: FullTextLookup, field: str, token: IndexToken) -> bool:
    """Whether a lookup comes to a token of a text: as the index holds it."""
    word = token.text
    if not lookup.test()(word):
        return False
    if lookup.exact is not None or lookup.begin is not None:
        return word == lookup.exact if lookup.begin is None else word.startswith(lookup.begin)
    held = {
        trigram
        for trigram in text_tokens.trigrams_of_token(token)
        if field != "content" or text_tokens.is_indexed_in_contents(trigram)
    }
    return held.issuperset(lookup.trigrams) or (lookup.numbers and text_tokens.is_number(word))
