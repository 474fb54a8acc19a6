"""``python -m services.align``: see README.md."""

from services.align.service import align_loop
from services.align.settings import AlignServiceSettings
from services.runtime.process import Process, run_process


def main(process: Process) -> None:
    """Align until the process is told to stop."""
    process.run([align_loop(process, AlignServiceSettings())])


if __name__ == "__main__":
    run_process("align", main)
