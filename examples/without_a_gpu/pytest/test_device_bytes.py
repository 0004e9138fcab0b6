# SPDX-License-Identifier: MIT
import pytest
from device_bytes import Device


@pytest.fixture
def device():
    device = Device()
    yield device
    device.close()


def test_bytes_come_back_from_the_simulated_device(device):
    assert device.name().startswith("cuaudit simulated")
    assert device.there_and_back(b"there and back") == b"there and back"
