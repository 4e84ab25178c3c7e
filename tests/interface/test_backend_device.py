"""What a device says of itself: its optional groups, its memory, what it takes."""

import numpy as np
import pytest

from ggarray.interface import (
    HOST,
    Async,
    BackendDevice,
    BufferType,
    Caps,
    DeviceType,
    Events,
    HostBuffer,
    HostBuffers,
    HostBufferType,
    Offload,
    Props,
    Registry,
)

PINNED = HostBufferType("pinned")


class Far(BufferType):
    def alloc(self, size):
        raise MemoryError


class Device(BackendDevice):
    name, description, type = "bare", "nothing else", DeviceType.GPU

    def memory(self):
        return 3, 7

    def supports_op(self, node):
        return False

    def init_backend(self, params=""):
        raise NotImplementedError


class Pinned(HostBuffers):
    """Has memory of its own kind, and takes none of the host's."""

    host_buffer_type, takes_host_ptr = PINNED, False


class InPlace(HostBuffers):
    def buffer_from_host_ptr(self, address, size, max_tensor_size):
        return HostBuffer.at(HOST, address, size)


class Marks(Events):
    def event_new(self):
        return object()

    def event_synchronize(self, event):
        return


class Choosy(Offload):
    def offload_op(self, node):
        return False


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("memory", [(), (Pinned,), (InPlace,), (HostBuffers,)])
@pytest.mark.parametrize("others", [(), (Marks,), (Choosy,), (Marks, Choosy)])
def test_caps_tell_which_groups_there_are(asynchronous, memory, others):
    groups = (*memory, *others)
    device = type("Grouped", (Device, *groups), {"asynchronous": asynchronous})()
    in_place = InPlace in groups or HostBuffers in groups
    expected = Caps(asynchronous, Pinned in groups, in_place, Marks in groups)
    assert device.caps == expected
    assert device.props.caps == expected


def test_caps_go_by_what_was_found_at_run_time():
    device = type("Found", (Device, Pinned), {})()
    assert device.caps == Caps(host_buffer=True)
    device.host_buffer_type, device.takes_host_ptr, device.asynchronous = None, True, True
    assert device.caps == Caps(asynchronous=True, buffer_from_host_ptr=True)


def test_props():
    expected = Props("bare", "nothing else", DeviceType.GPU, 3, 7, None, Caps())
    assert Device().props == expected
    found = type("Found", (Device,), {"device_id": "0000:01:00.0"})()
    assert found.props == expected._replace(device_id="0000:01:00.0")


def test_buffer_types_of_a_device():
    far, other = Far("far"), Far("far")
    own_is_host, own_is_far = Device(), Device()
    own_is_far.buffer_type = far
    for device, expected in [
        (own_is_host, {HOST: True, PINNED: True, far: False}),
        (own_is_far, {far: True, other: False, HOST: False, PINNED: False}),
    ]:
        found = {each: device.supports_buffer_type(each) for each in expected}
        assert found == expected
    own_is_host.buffer_type = PINNED
    assert own_is_host.supports_buffer_type(HOST)


def test_memory_in_place():
    memory = np.zeros(8, np.uint8)
    address = memory.__array_interface__["data"][0]
    InPlace().buffer_from_host_ptr(address, 8, 8).clear(1)
    assert memory.all()
    with pytest.raises(NotImplementedError):
        Pinned().buffer_from_host_ptr(address, 8, 8)


def test_a_stream_has_events_only_if_it_says_so():
    class Late(Async):
        def set_tensor_async(self, tensor, data, offset=0):
            return

        def get_tensor_async(self, tensor, data, offset=0):
            return

    event = Marks().event_new()
    for use in (Late().event_record, Late().event_wait):
        with pytest.raises(NotImplementedError):
            use(event)
    assert Late().copy_tensor_async(None, None, None) is False


def test_functions_of_a_registry():
    class Bare(Registry):
        name = "bare"

        def devices(self):
            return [Device()]

    class Extra(Bare):
        def procedures(self):
            return {"version": lambda: 5}

    assert (Bare().score(), Bare().get_proc_address("version")) == (1, None)
    assert Extra().get_proc_address("version")() == 5
    assert Extra().get_proc_address("versions") is None


@pytest.mark.parametrize("missing", ["memory", "supports_op", "init_backend"])
def test_a_device_has_to_answer(missing):
    unfinished = type("Unfinished", (Device,), {missing: getattr(BackendDevice, missing)})
    with pytest.raises(TypeError, match=f"abstract method '?{missing}"):
        unfinished()
