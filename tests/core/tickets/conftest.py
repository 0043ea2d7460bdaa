from tests.support.tickets import desk

__all__ = ["desk"]
