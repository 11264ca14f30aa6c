"""Search of runs: from the filter text of a request to a page of MLflow's JSON."""
