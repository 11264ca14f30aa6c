"""What MLflow's client can be asked to do, as one long list that is done with two servers."""
