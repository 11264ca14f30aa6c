"""What calls of language models cost: a price list that ships as data, prices that a deployment
sets itself, and how the cost of a call follows from them."""

from mlcore.prices.cost import cost
from mlcore.prices.price_list import Own, Price, own_prices, price

__all__ = ["Own", "Price", "cost", "own_prices", "price"]
