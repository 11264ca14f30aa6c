"""Reads that more than one function answers, by REST and by GraphQL: plain arguments in, MLflow's
JSON out."""
