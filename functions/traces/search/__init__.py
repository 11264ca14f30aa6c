"""How traces are found, counted and compared."""
