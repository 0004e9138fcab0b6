// SPDX-License-Identifier: MIT
use device_bytes::Device;

#[test]
fn bytes_come_back_from_the_simulated_device() {
    let device = Device::open().expect("a device");
    let name = device.name().expect("its name");
    assert!(name.starts_with("cuaudit simulated"), "{}", name);
    assert_eq!(device.there_and_back(b"there and back").expect("a copy"), b"there and back");
}
