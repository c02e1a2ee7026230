"""``python -m nigh``: the program."""

import os
import sys

from nigh import program

os.execv(program(), ["nigh", *sys.argv[1:]])
