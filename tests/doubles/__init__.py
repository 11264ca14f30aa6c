"""Stand-ins between the product and a real engine: they lag, fail, repeat and count."""
