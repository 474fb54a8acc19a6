"""The process of the engine: aligned topics in, partials out."""
