"""Newline-delimited JSON, parsed as bytes."""

from __future__ import annotations
