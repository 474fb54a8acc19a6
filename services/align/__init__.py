"""The process of align: source topics in, aligned topics out."""
