"""What can spoil a training on this machine, looked at before it does: facts, and a finding for each with its fix."""
