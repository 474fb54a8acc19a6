"""``python -m services.control``: see README.md."""

from services.control.service import CONTROL_SERVICE, Control
from services.control.settings import ControlSettings
from services.runtime.process import Process, run_process


def main(process: Process) -> None:
    """Keep the catalog until the process is told to stop."""
    control = Control(process, ControlSettings())
    process.run([control.loop, control.statistics.loop], services=[CONTROL_SERVICE], register=[control.register])


if __name__ == "__main__":
    run_process("control", main)
