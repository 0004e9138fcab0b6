// SPDX-License-Identifier: MIT
//! Bytes on a device, by the CUDA driver, which the linker finds as `-lcuda`. Knows nothing of cuaudit.
use std::ffi::CStr;
use std::os::raw::{c_char, c_int, c_uint, c_void};

#[link(name = "cuda")]
extern "C" {
    fn cuInit(flags: c_uint) -> c_int;
    fn cuDeviceGetName(name: *mut c_char, length: c_int, device: c_int) -> c_int;
    fn cuDevicePrimaryCtxRetain(context: *mut *mut c_void, device: c_int) -> c_int;
    fn cuDevicePrimaryCtxRelease_v2(device: c_int) -> c_int;
    fn cuCtxSetCurrent(context: *mut c_void) -> c_int;
    fn cuMemAlloc_v2(memory: *mut u64, bytes: usize) -> c_int;
    fn cuMemFree_v2(memory: u64) -> c_int;
    fn cuMemcpyHtoD_v2(to: u64, from: *const c_void, bytes: usize) -> c_int;
    fn cuMemcpyDtoH_v2(to: *mut c_void, from: u64, bytes: usize) -> c_int;
}

fn check(code: c_int) -> Result<(), c_int> {
    if code == 0 { Ok(()) } else { Err(code) }
}

/// The primary context of the first device, current on this thread.
pub struct Device;

impl Device {
    pub fn open() -> Result<Device, c_int> {
        let mut context = std::ptr::null_mut();
        unsafe {
            check(cuInit(0))?;
            check(cuDevicePrimaryCtxRetain(&mut context, 0))?;
            let device = Device;
            check(cuCtxSetCurrent(context))?;
            Ok(device)
        }
    }

    pub fn name(&self) -> Result<String, c_int> {
        let mut name: [c_char; 128] = [0; 128];
        unsafe {
            check(cuDeviceGetName(name.as_mut_ptr(), name.len() as c_int, 0))?;
            Ok(CStr::from_ptr(name.as_ptr()).to_string_lossy().into_owned())
        }
    }

    /// Sends the bytes to the device and fetches them again.
    pub fn there_and_back(&self, sent: &[u8]) -> Result<Vec<u8>, c_int> {
        let mut memory = 0;
        let mut got = vec![0; sent.len()];
        unsafe {
            check(cuMemAlloc_v2(&mut memory, sent.len()))?;
            let copied = check(cuMemcpyHtoD_v2(memory, sent.as_ptr().cast(), sent.len()))
                .and_then(|()| check(cuMemcpyDtoH_v2(got.as_mut_ptr().cast(), memory, got.len())));
            check(cuMemFree_v2(memory))?;
            copied?;
        }
        Ok(got)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        unsafe { cuDevicePrimaryCtxRelease_v2(0) };
    }
}
