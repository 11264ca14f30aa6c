"""Repositories, one for each aggregate: items of the table in, entities out; conditions and
transactions live here."""
