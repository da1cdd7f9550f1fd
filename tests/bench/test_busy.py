"""Devices that another program uses."""

from dataclasses import replace

import pytest

from longpole.bench import Job, Outcome, Policy, Runner
from longpole.bench.time import processes, workers
from longpole.bench.time.commands import CommandPlan
from longpole.devices import DeviceBusyError, Found, protocol, wait_until_idle
from longpole.devices.driverless import CpuProvider, FakeProvider

JOB = Job(["true"], key="k", format="none")


def busy_device(n_readings):
    provider = FakeProvider(busy_readings=n_readings)
    (device,) = provider.list_devices()
    return device, provider


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(protocol, "POLL_S", 0.01)


@pytest.mark.parametrize(
    ("busy", "outcome"),
    [("refuse", Outcome.DEVICE_ERROR), ("wait", Outcome.OK), ("allow", Outcome.OK)],
)
def test_a_busy_device_is_refused_waited_for_or_taken(busy, outcome):
    device, provider = busy_device(3)
    with Runner(Found({device: provider}), policy=Policy(busy=busy)) as runner:
        (record,) = runner.run([JOB])
    assert record.outcome is outcome
    if busy == "refuse":
        assert "device FAKE-0000 is busy: used by process 1" in record.message
        assert list(runner.quarantined) == ["FAKE-0000"]


def test_a_busy_device_is_refused_before_anything_runs_there(tmp_path):
    device, provider = busy_device(10**9)
    job = Job(["touch", str(tmp_path / "ran")], format="none")
    with Runner(Found({device: provider})) as runner:
        runner.run([job])
    assert not (tmp_path / "ran").exists()


def test_functions_are_not_timed_on_a_busy_device(monkeypatch):
    device, provider = busy_device(10**9)
    monkeypatch.setattr("longpole.bench.time.workers.select", lambda _: Found({device: provider}))
    campaign = processes.Campaign(names=["math:gcd"], clock="torch", cache="hot")
    with pytest.raises(DeviceBusyError, match="is busy: used by process 1"):
        next(processes.time_in_processes(campaign))


@pytest.mark.parametrize("clock", ["cpu", "math:gcd"])
def test_commands_and_clocks_of_users_get_a_device_if_asked(clock, monkeypatch):
    device, provider = busy_device(10**9)
    monkeypatch.setattr(workers, "select", lambda _: Found({device: provider}))
    with pytest.raises(DeviceBusyError), workers.device_in_use(clock, "refuse"):
        pass
    with workers.device_in_use(clock, "allow") as in_use:
        assert in_use.uuid == "FAKE-0000"
    with workers.device_in_use(clock, None) as in_use:
        assert in_use is None


def test_a_command_is_timed_on_the_device_that_it_is_given(monkeypatch):
    device, provider = busy_device(10**9)
    monkeypatch.setattr(workers, "select", lambda _: Found({device: provider}))
    campaign = processes.Campaign(
        names=["true"], commands=CommandPlan(), n_processes=1, budget_s=0.1, busy="allow"
    )
    (record,) = processes.time_in_processes(campaign)
    assert record.outcome is Outcome.OK
    assert record.environment["device"]["uuid"] == "FAKE-0000"
    refused = replace(campaign, busy=None, lock_clock_mhz=1200)
    with pytest.raises(DeviceBusyError):
        next(processes.time_in_processes(refused))


def test_a_record_says_on_which_device_it_was_timed(monkeypatch):
    device, provider = busy_device(0)
    monkeypatch.setattr("longpole.bench.time.workers.select", lambda _: Found({device: provider}))
    campaign = processes.Campaign(
        names=["math:gcd"], clock="torch", cache="hot", n_processes=1, budget_s=0.1
    )
    (record,) = processes.time_in_processes(campaign)  # it fails, for want of a GPU
    assert record.environment["device"] == device.to_dict()
    assert record.environment["device"]["uuid"] == "FAKE-0000"


def test_a_processor_is_always_used_by_somebody():
    provider = CpuProvider()
    (device,) = provider.list_devices()
    wait_until_idle(device, provider, "refuse")


def test_waiting_ends_when_it_is_given_up():
    device, provider = busy_device(10**9)
    wait_until_idle(device, provider, "wait", given_up=lambda: provider.n_readings > 3)
    assert provider.n_readings == 4


class Lagging(FakeProvider):
    """Its utilisation is that of the last second, in which a program has ended."""

    def read(self, device):
        reading = super().read(device)
        return replace(reading, utilisation_share=0.41 if self.n_readings <= 3 else 0.0)


def test_the_utilisation_of_a_program_that_has_ended_is_no_reason_to_refuse(monkeypatch):
    provider = Lagging()
    (device,) = provider.list_devices()
    wait_until_idle(device, provider, "refuse")
    assert provider.n_readings == 4
    monkeypatch.setattr(protocol, "SETTLE_S", 0.0)
    with pytest.raises(DeviceBusyError, match="41% utilised"):
        wait_until_idle(device, Lagging(), "refuse")


def test_an_unknown_word_is_refused():
    with pytest.raises(ValueError, match="busy must be refuse, wait or allow"):
        Policy(busy="maybe")
