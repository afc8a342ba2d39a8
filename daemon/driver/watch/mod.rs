//! stub
use steadfast_engine::VertexId;
use steadfast_resources::{Host, Source};
#[derive(Debug)]
pub struct Hub;
#[derive(Debug)]
pub enum Signal {
    Established(VertexId),
    Absent(VertexId, String),
    Changed(VertexId),
    Suspect(VertexId),
}
impl Hub {
    pub fn new(
        _h: tokio::runtime::Handle,
        _host: Host,
        _t: impl Fn(Vec<Signal>) + Send + Sync + 'static,
    ) -> Self {
        Self
    }
    pub fn arm(&self, _v: VertexId, _s: Vec<Source>) {}
    pub fn disarm(&self, _v: VertexId) {}
    pub fn rearm_failed(&self) {}
    pub fn close(self) {}
}
