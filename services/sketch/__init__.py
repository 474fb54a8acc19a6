"""The process of sketch: aligned topics in, statistics out."""
