"""What a person starts, and what is known before: the form, its check, devices, sweeps, the demo."""
