"""Benchmarks of Marvin against hand-written scripts that do the same; `make bench` prints them."""
