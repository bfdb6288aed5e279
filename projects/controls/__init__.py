"""ControlTransformer v2: body pose and game state to 28 game controls."""
