"""Shows the records that were not used."""
