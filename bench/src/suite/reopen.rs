//! Starting on what is there: after SIGKILL and after a clean stop.

use super::{COLLECTION, Round, say};
use crate::client::{Connection, request};
use crate::report::{Goal, Sample};
use crate::server::Server;
use std::io;
use std::path::Path;

impl Round<'_> {
    /// Kills `server`, opens its directory, counts; stops it, opens it again.
    pub(super) fn reopen(&mut self, server: Server, dir: &Path) -> io::Result<()> {
        say("  open after SIGKILL and after a clean stop");
        let counted = count(&server)?;
        // Something of the log must be there to be replayed: what was just written is not yet sealed.
        server.kill()?;
        let server = Server::product(dir, "interval:100ms")?;
        let killed = server.ready_after.as_secs_f64();
        let after = count(&server)?;
        if after != counted {
            return Err(io::Error::other(format!("{counted} documents before SIGKILL, {after} after")));
        }
        let stopped = server.stop()?.as_secs_f64();
        let server = Server::product(dir, "interval:100ms")?;
        let clean = server.ready_after.as_secs_f64();
        self.record("open after SIGKILL", "s", "", Goal::AtMost(2.0), Sample::alone(killed));
        self.record("stop when asked", "s", "", Goal::AtMost(10.0), Sample::alone(stopped));
        self.record("open after a clean stop", "s", "", Goal::AtMost(0.5), Sample::alone(clean));
        Ok(())
    }
}

fn count(server: &Server) -> io::Result<u64> {
    let mut connection = Connection::open(server.address())?;
    let (status, body) = connection.fetch(&request("POST", &format!("{COLLECTION}/count"), &[], b"{}"))?;
    let answer: serde_json::Value = serde_json::from_slice(&body)?;
    answer["count"].as_u64().ok_or_else(|| io::Error::other(format!("count answered {status}: {answer}")))
}
