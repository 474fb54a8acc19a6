"""``python -m services.fanout``: see README.md."""

from services.fanout.service import RESULTS_SERVICE, Fanout
from services.fanout.settings import FanoutSettings
from services.runtime.process import Process, run_process


def main(process: Process) -> None:
    """Merge and serve until the process is told to stop."""
    fanout = Fanout(process, FanoutSettings())
    process.run([fanout.loop], services=[RESULTS_SERVICE], register=[fanout.register])


if __name__ == "__main__":
    run_process("fanout", main)
