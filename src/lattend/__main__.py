"""`python -m lattend`: the same as the command `lattend`."""

import sys

from lattend.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
