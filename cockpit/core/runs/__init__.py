"""Which runs there are: all of them in one list, what they cost, what happened while nobody looked."""
