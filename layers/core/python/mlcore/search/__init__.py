"""The filter languages of all searches (``metrics.loss < 0.1 AND tags.team = 'a'``): how they are
parsed, which fields they know, and whether an entity matches.

Nothing here reads storage.
"""
