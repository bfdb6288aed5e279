"""Demo drives: a rover in a corridor, things in its way, and what it does about them. `road` the world and its
pictures, `task` writes a folder of drives.
"""
