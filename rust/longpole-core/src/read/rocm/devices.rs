//! The devices of a machine, by agent number: ROCm numbers all agents, including the CPUs.

use std::collections::HashMap;

use serde_json::{Value, json};

/// The devices by agent number.
#[derive(Default)]
pub(super) struct Devices {
    of_agent: HashMap<i64, i64>,
    described: Vec<Value>,
}

impl Devices {
    /// Adds a device with its number among the devices.
    pub(super) fn add(&mut self, agent: i64, device: i64, name: Option<&str>) {
        if self.of_agent.insert(agent, device).is_none() {
            self.described.push(json!({"id": device, "name": name}));
        }
    }

    /// Returns the device of an agent.
    pub(super) fn of_agent(&self, agent: Option<i64>) -> Option<i64> {
        self.of_agent.get(&agent?).copied()
    }

    /// Returns the device properties for the header.
    pub(super) fn properties(self) -> Option<(String, String)> {
        let described = Value::Array(self.described);
        let is_any = described.as_array().is_some_and(|list| !list.is_empty());
        is_any.then(|| ("deviceProperties".to_owned(), described.to_string()))
    }
}
