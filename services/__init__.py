"""The processes of Skyband: thin shells around the stages of the package; run from a checkout or an image."""
