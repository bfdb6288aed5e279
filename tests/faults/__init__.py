"""Faults injected into real trainings, and what each cost: `python -m tests.faults --out docs/reliability.md`.

`trainings` says what is trained, `injected` at which call a process is hurt, `forked` how processes are started,
`verdicts` what counts as lost, `plans` which faults there are; `suite` carries them out and `page` writes the table.
"""
