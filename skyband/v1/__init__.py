"""The gRPC API: modules generated from proto/skyband/v1 (*_pb2), and what maps its messages to values of the model."""

# Nothing is imported here: who needs names only need not load gRPC.
__all__: list[str] = []
