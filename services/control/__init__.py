"""The process of control: the catalog behind gRPC."""
