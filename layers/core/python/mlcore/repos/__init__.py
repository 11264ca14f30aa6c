"""Repositories, one for each aggregate: they read items of the table and return entities, and
contain the conditions and transactions of the API's writes."""
