"""Values that the YAML library fails to read, each with another error."""

from __future__ import annotations

UNREADABLE = ["0x_", "0b__", "+_", "!!int ''", "!!float ''", "!!bool x", '"\\UFFFFFFFF"', "!!set #", "2024-13-45"]
