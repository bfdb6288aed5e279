"""Logs of real vehicles to drives: `udacity` the rover simulator, `donkeycar` a tub, `comma` a comma2k19 segment;
`rules` how labels are made, `pictures` how frames are read, `kinds` which is which.
"""
