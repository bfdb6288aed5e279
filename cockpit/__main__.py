"""`python -m cockpit`: the command without its script."""

import sys

from cockpit.cli import main

if __name__ == "__main__":
    sys.exit(main())
