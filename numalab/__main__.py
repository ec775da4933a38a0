"""``python -m numalab`` is the command ``numalab``."""

import sys

from numalab.cli import main

if __name__ == "__main__":
    sys.exit(main())
