"""Computes the cost of calls of language models, from a price list that ships as data and from
prices that a deployment sets itself; and knows AWS's prices (`aws`)."""
