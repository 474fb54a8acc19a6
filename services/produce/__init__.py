"""Writes rows of files, or generated ones, to the source topics of a group."""
