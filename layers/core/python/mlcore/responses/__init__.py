"""Entities in the shape of MLflow's JSON, for every function that answers them; decides nothing."""
