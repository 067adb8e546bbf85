"""The shape of ids that programs make for themselves."""

import re

UUID_PATTERN = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
UUID = re.compile(UUID_PATTERN)
