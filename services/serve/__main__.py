"""``python -m services.serve``: see README.md."""

from services.align.service import align_loop
from services.align.settings import AlignServiceSettings
from services.control.service import CONTROL_SERVICE, Control
from services.control.settings import ControlSettings
from services.engine.service import engine_loop
from services.engine.settings import EngineSettings
from services.fanout.service import RESULTS_SERVICE, Fanout
from services.fanout.settings import FanoutSettings
from services.runtime.process import Process, run_process
from services.sketch.service import sketch_loop, sweep_loop
from services.sketch.settings import SketchSettings


def main(process: Process) -> None:
    """Run all stages until the process is told to stop."""
    control = Control(process, ControlSettings())
    fanout = Fanout(process, FanoutSettings())
    process.run(
        [
            control.loop,
            control.statistics.loop,
            fanout.loop,
            engine_loop(process, EngineSettings()),
            sketch_loop(process, SketchSettings()),
            sweep_loop(process),
            align_loop(process, AlignServiceSettings()),
        ],
        services=[CONTROL_SERVICE, RESULTS_SERVICE],
        register=[control.register, fanout.register],
    )


if __name__ == "__main__":
    run_process("serve", main)
