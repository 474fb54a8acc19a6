"""The experiments of the papers, run on the project's own implementations."""
