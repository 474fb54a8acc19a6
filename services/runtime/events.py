"""Names of the events that every process logs."""

__all__ = [
    "CALL_FAILED",
    "PROCESS_READY",
    "PROCESS_STOPPED",
    "PROCESS_STOPPING",
    "STAGE_FAILED",
    "STAGE_RUNNING",
    "STAGE_STOPPED",
]

PROCESS_READY = "ready"
PROCESS_STOPPING = "stopping"
PROCESS_STOPPED = "stopped"
STAGE_RUNNING = "stage running"
STAGE_STOPPED = "stage stopped"
STAGE_FAILED = "stage failed, built anew"
CALL_FAILED = "call failed"
