//! placeholder until the workspace lands
#[derive(Debug, Clone)]
pub struct Snapshot;
