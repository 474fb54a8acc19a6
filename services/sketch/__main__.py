"""``python -m services.sketch``: see README.md."""

from services.runtime.process import Process, run_process
from services.sketch.service import sketch_loop, sweep_loop
from services.sketch.settings import SketchSettings


def main(process: Process) -> None:
    """Run shards until the process is told to stop."""
    process.run([sketch_loop(process, SketchSettings()), sweep_loop(process)])


if __name__ == "__main__":
    run_process("sketch", main)
