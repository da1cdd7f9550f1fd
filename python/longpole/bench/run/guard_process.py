"""The process that guards a device: started by path, so that it imports nothing of longpole.

Only the extension module is loaded, from the file named by the first argument.
The second, if any, is the descriptor of a lease: open here, it keeps the device
taken until the last process of a job is gone, also when the runner is not there
any more. Requests come on standard input, events go to standard output.
"""

import os
import signal
import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader

__all__ = ["main"]


def main(core_path: str, *leases: str) -> None:
    """Guard until the runner closes its end of the pipe."""
    # The runner decides when this process ends, not who signals a whole group.
    # A handler, unlike an ignored or a blocked signal, is not handed down to the jobs.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, _take_no_notice)
    # Python ignores it; a job is to find it as it usually is.
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    for lease in leases:
        os.set_inheritable(int(lease), False)  # noqa: FBT003 - its only form
    spec = spec_from_loader("_core", ExtensionFileLoader("_core", core_path))
    if spec is None or spec.loader is None:
        raise ImportError(core_path)
    core = module_from_spec(spec)
    spec.loader.exec_module(core)
    core.guard_main()


def _take_no_notice(_number: int, _frame: object) -> None:
    pass


if __name__ == "__main__":
    main(*sys.argv[1:])
