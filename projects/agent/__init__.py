"""A world model of a game, an agent trained on its recordings, and one trained in what the model dreams (Dreamer 4)."""
