"""`python -m backsweep`, for where the command itself is not on the path."""

import sys

from backsweep.cli import main

sys.exit(main())
