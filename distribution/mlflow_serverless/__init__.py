"""The command ``mlflow-serverless``, with the product beside it in the folder ``product``."""
