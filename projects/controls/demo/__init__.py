"""Demo recordings: a scripted player whose body announces every control a few frames ahead.

`names` the 28 controls · `leads` how long ahead · `script` what the player decides · `moods` the player who decides ·
`perform` decisions to controls, and the best possible prediction of them · `body` decisions to pose · `game` controls
to game state · `session` all of it together · `task` writes a folder of sessions · `mimic` gestures for controls that a
real person made.
"""
