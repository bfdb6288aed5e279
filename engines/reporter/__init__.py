"""What `engines.report` is made of: a run that a script writes by itself."""
