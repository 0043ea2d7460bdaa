"""Sub-agents."""
