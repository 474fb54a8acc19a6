"""``python -m services.engine``: see README.md."""

from services.engine.service import engine_loop
from services.engine.settings import EngineSettings
from services.runtime.process import Process, run_process


def main(process: Process) -> None:
    """Run shards until the process is told to stop."""
    process.run([engine_loop(process, EngineSettings())])


if __name__ == "__main__":
    run_process("engine", main)
