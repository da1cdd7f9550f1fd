"""The process that guards a device, started by path so that it does not import longpole.

Only the extension module and the sampler are loaded, by path. The first argument is the file of the
module, the second is the sampling configuration as JSON, empty for none. The others are the file
descriptors of leases: kept open here, they hold the device until the last process of a job has
exited, even if the runner has died. Requests arrive on standard input, and events are written to
standard output.
"""

import os
import signal
import sys
from importlib.machinery import ExtensionFileLoader, SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from types import ModuleType


def main(core_path: str, sampling: str, *leases: str) -> None:
    """Guard until the runner closes its end of the pipe."""
    # Only the runner ends this process, not a signal to the whole group. A handler, unlike an
    # ignored or a blocked signal, is not inherited by the jobs.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, _take_no_notice)
    # Python ignores this signal; a job should have the default handler.
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    for lease in leases:
        os.set_inheritable(int(lease), False)  # noqa: FBT003 - the function takes positional arguments only
    core = _loaded(ExtensionFileLoader("_core", core_path))
    if not sampling:
        core.guard_main()
        return
    sampler = _loaded(SourceFileLoader("sampler", __file__.replace("guard_process", "sampler")))
    try:
        reading = sampler.Sampler(sampling)
    except FileNotFoundError:  # the runner was interrupted, and has removed the file of readings
        return
    try:
        core.guard_main()
    finally:
        reading.close()


def _loaded(loader: ExtensionFileLoader | SourceFileLoader) -> ModuleType:
    spec = spec_from_loader(loader.name, loader)
    if spec is None or spec.loader is None:
        raise ImportError(loader.path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _take_no_notice(_number: int, _frame: object) -> None:
    pass


if __name__ == "__main__":
    main(*sys.argv[1:])
