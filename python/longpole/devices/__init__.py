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

from longpole.devices.leases import Lease, lock_folder
from longpole.devices.protocol import (
    SLOWDOWNS,
    Busy,
    Device,
    DeviceBusyError,
    DeviceLostError,
    Process,
    Provider,
    Reading,
    wait_until_idle,
)
from longpole.devices.selection import Found, discover, sampler_source, select, unlisted
from longpole.devices.visibility import child_changes, dev_select_flag, visible_devices

__all__ = [
    "SLOWDOWNS",
    "Busy",
    "Device",
    "DeviceBusyError",
    "DeviceLostError",
    "Found",
    "Lease",
    "Process",
    "Provider",
    "Reading",
    "child_changes",
    "dev_select_flag",
    "discover",
    "lock_folder",
    "sampler_source",
    "select",
    "unlisted",
    "visible_devices",
    "wait_until_idle",
]
