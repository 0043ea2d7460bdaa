"""How fast Marvin is beside a script that does the same by hand; `make bench` prints it."""
