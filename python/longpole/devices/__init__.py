"""The devices of this machine: which exist, their state, and who may use them.

`discover` finds them, `select` chooses by the names that users give, a provider reads their clocks
and temperatures, and a `Lease` prevents two jobs from sharing one. Importing this starts no driver;
`discover` asks NVML or a vendor's tool, which create no context on the device.

Examples
--------
>>> from longpole import devices
>>> [device.uuid for device in devices.select(["fake:2"])]
['FAKE-0000', 'FAKE-0001']
"""

from typing import TYPE_CHECKING

from longpole.words.public_names import imported_on_use

if TYPE_CHECKING:
    from longpole.devices.leases import Lease as Lease
    from longpole.devices.leases import lock_folder as lock_folder
    from longpole.devices.protocol import SLOWDOWNS as SLOWDOWNS
    from longpole.devices.protocol import Busy as Busy
    from longpole.devices.protocol import Device as Device
    from longpole.devices.protocol import DeviceBusyError as DeviceBusyError
    from longpole.devices.protocol import DeviceLostError as DeviceLostError
    from longpole.devices.protocol import Process as Process
    from longpole.devices.protocol import Provider as Provider
    from longpole.devices.protocol import Reading as Reading
    from longpole.devices.protocol import wait_until_idle as wait_until_idle
    from longpole.devices.selection import Found as Found
    from longpole.devices.selection import discover as discover
    from longpole.devices.selection import sampler_source as sampler_source
    from longpole.devices.selection import select as select
    from longpole.devices.selection import unlisted as unlisted
    from longpole.devices.visibility import child_changes as child_changes
    from longpole.devices.visibility import dev_select_flag as dev_select_flag
    from longpole.devices.visibility import visible_devices as visible_devices

_MODULES = {
    "Lease": "leases",
    "lock_folder": "leases",
    "SLOWDOWNS": "protocol",
    "Busy": "protocol",
    "Device": "protocol",
    "DeviceBusyError": "protocol",
    "DeviceLostError": "protocol",
    "Process": "protocol",
    "Provider": "protocol",
    "Reading": "protocol",
    "wait_until_idle": "protocol",
    "Found": "selection",
    "discover": "selection",
    "sampler_source": "selection",
    "select": "selection",
    "unlisted": "selection",
    "child_changes": "visibility",
    "dev_select_flag": "visibility",
    "visible_devices": "visibility",
}

__getattr__, __dir__ = imported_on_use(__name__, _MODULES)
