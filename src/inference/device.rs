//! Which device the network runs on.

use std::fmt;
use std::str::FromStr;

use candle_core::Device;
use serde::{Deserialize, Serialize};

/// The `device` setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum DeviceChoice {
    /// The first GPU where there is one, otherwise the CPU.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// The GPU of this number; an error where it is not there.
    Cuda(usize),
}

/// Why a device cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// Not a device.
    #[error("device `{0}` is none of auto, cpu, cuda:N")]
    Unknown(String),
    /// The GPU is not there, or this program was built without the `cuda` feature.
    #[error("cuda:{index} cannot be used; `auto` would fall back to the CPU")]
    Cuda {
        /// Number of the GPU.
        index: usize,
        /// What candle said.
        #[source]
        source: candle_core::Error,
    },
}

impl FromStr for DeviceChoice {
    type Err = DeviceError;

    fn from_str(text: &str) -> Result<Self, DeviceError> {
        let unknown = || DeviceError::Unknown(text.to_owned());
        match text {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda(0)),
            _ => text.strip_prefix("cuda:").and_then(|index| index.parse().ok()).map(Self::Cuda).ok_or_else(unknown),
        }
    }
}

impl TryFrom<String> for DeviceChoice {
    type Error = DeviceError;

    fn try_from(text: String) -> Result<Self, DeviceError> {
        text.parse()
    }
}

impl From<DeviceChoice> for String {
    fn from(choice: DeviceChoice) -> Self {
        choice.to_string()
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(index) => write!(f, "cuda:{index}"),
        }
    }
}

impl DeviceChoice {
    /// Opens the device. `auto` says in one log line what it found.
    ///
    /// # Errors
    /// [`DeviceError::Cuda`] where a GPU was asked for by number and cannot be used.
    pub fn open(self) -> Result<Device, DeviceError> {
        match self {
            Self::Cpu => Ok(Device::Cpu),
            Self::Cuda(index) => open_cuda(index).map_err(|source| DeviceError::Cuda { index, source }),
            Self::Auto => match open_cuda(0) {
                Ok(device) => {
                    tracing::info!("running on cuda:0");
                    Ok(device)
                }
                Err(reason) => {
                    tracing::info!(%reason, "no GPU that can be used: running on the CPU");
                    Ok(Device::Cpu)
                }
            },
        }
    }
}

/// A stream of its own is tracked by events, so a tensor made by one thread may be read by another.
fn open_cuda(index: usize) -> candle_core::Result<Device> {
    Device::new_cuda_with_stream(index)
}

/// The name of an open device, as the setting would spell it.
#[must_use]
pub fn device_name(device: &Device) -> String {
    match device.location() {
        candle_core::DeviceLocation::Cpu => "cpu".to_owned(),
        candle_core::DeviceLocation::Cuda { gpu_id } => format!("cuda:{gpu_id}"),
        candle_core::DeviceLocation::Metal { gpu_id } => format!("metal:{gpu_id}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_read_as_they_are_written() {
        for text in ["auto", "cpu", "cuda:0", "cuda:3"] {
            assert_eq!(text.parse::<DeviceChoice>().unwrap().to_string(), text);
        }
        for text in ["", "gpu", "cuda:", "cuda:-1", "cuda:x"] {
            assert!(text.parse::<DeviceChoice>().is_err(), "{text}");
        }
    }

    #[cfg(not(feature = "cuda"))]
    #[test]
    fn auto_without_a_gpu_is_the_cpu_and_a_numbered_gpu_an_error() {
        assert!(DeviceChoice::Auto.open().unwrap().is_cpu());
        assert!(DeviceChoice::Cuda(0).open().is_err());
    }
}
