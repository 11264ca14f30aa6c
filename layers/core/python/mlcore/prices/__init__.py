"""What calls of language models cost: a price list that ships as data, prices that a deployment
sets itself, and how the cost of a call follows from them."""
