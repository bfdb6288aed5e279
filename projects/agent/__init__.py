"""An agent that learns from recorded games: a world model, its policy, and play in a dream."""
