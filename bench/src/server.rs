//! A server as a child process: started on a directory of its own, watched from outside, killed or asked to stop.
//!
//! Works for the product and for the floor programs, since both say `listening on http://ADDRESS` once they answer.
//! What it reads of the child it reads from `/proc`; it trusts no figure that the child gives of itself.

use crate::floor::http::Work;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long a server may take to say that it listens.
const START_MAX: Duration = Duration::from_secs(120);
/// How long a server may take to stop when asked.
const STOP_MAX: Duration = Duration::from_secs(20);
/// Between two looks at a server's processor time.
const LOOK: Duration = Duration::from_millis(100);
/// The kernel's tick, in which it tells processor times (`USER_HZ`, 100 on every Linux that we know).
const TICK_MILLIS: u64 = 10;
/// A look with at most this many ticks of processor time is a quiet one.
const QUIET_TICKS: u64 = 1;
/// So many quiet looks together are rest.
const QUIET_LOOKS: u32 = 5;

static STARTED: AtomicU32 = AtomicU32::new(0);
static SCRATCHES: AtomicU32 = AtomicU32::new(0);

/// A running child, killed when dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    address: SocketAddr,
    /// From the start of the process to the line that says it listens.
    pub ready_after: Duration,
    /// What it had said on standard error by then.
    pub said: String,
}

/// The server's executable: `QUARRYDB_BIN`, else beside our own, whatever the profile.
///
/// # Errors
/// Where it is in neither place.
pub fn executable() -> io::Result<PathBuf> {
    if let Some(named) = std::env::var_os("QUARRYDB_BIN") {
        return Ok(named.into());
    }
    let own = std::env::current_exe()?;
    let beside = own.ancestors().skip(1).take(2).map(|dir| dir.join("quarrydb")).find(|path| path.is_file());
    beside.ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::NotFound,
            "the server is not built: cargo build --profile fast -p quarrydb-http --bin quarrydb (or set QUARRYDB_BIN)",
        )
    })
}

impl Server {
    /// Starts the product on `data` with `durability`, on a free port.
    ///
    /// # Errors
    /// Where it cannot be started or ends before it listens (with what it said).
    pub fn product(data: &Path, durability: &str) -> io::Result<Self> {
        Self::product_with(data, durability, &[])
    }

    /// The same with further options.
    ///
    /// # Errors
    /// As `product`.
    pub fn product_with(data: &Path, durability: &str, options: &[&str]) -> io::Result<Self> {
        let mut command = Command::new(executable()?);
        command.args(["serve", "--listen", "127.0.0.1:0", "--durability", durability, "--data"]);
        command.arg(data).args(options);
        Self::start(command)
    }

    /// Starts a floor program, its log in `dir`.
    ///
    /// # Errors
    /// As `product`.
    pub fn floor(dir: &Path, work: Work, answer_bytes: usize) -> io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["floor", "--work", work.name(), "--answer-bytes", &answer_bytes.to_string(), "--log"]);
        command.arg(dir.join("floor.log"));
        Self::start(command)
    }

    /// Starts any program that says `listening on http://ADDRESS` on its standard output.
    ///
    /// # Errors
    /// As `product`.
    pub fn start(mut command: Command) -> io::Result<Self> {
        let from = Instant::now();
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let log = std::env::temp_dir().join(format!("quarrydb-bench-{}-{number}-stderr", std::process::id()));
        let errors = fs::File::create(&log)?;
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors).spawn()?;
        let stdout = child.stdout.take().ok_or_else(|| io::Error::other("no standard output"))?;
        let mut lines = BufReader::new(stdout).lines();
        let ready = loop {
            match lines.next() {
                Some(Ok(line)) => {
                    let place = line.split_once("listening on http://").map(|(_, rest)| rest.trim());
                    if let Some(address) = place.and_then(|a| a.parse().ok()) {
                        break Some(address);
                    }
                }
                Some(Err(_)) | None => break None,
            }
            if from.elapsed() > START_MAX {
                break None;
            }
        };
        let ready_after = from.elapsed();
        let said = fs::read_to_string(&log).unwrap_or_default();
        // Unlinked already: it goes with the child.
        let _ = fs::remove_file(&log);
        let Some(address) = ready else {
            let _ = child.kill();
            let status = child.wait()?;
            return Err(io::Error::other(format!("the server did not start ({status}): {said}")));
        };
        // What it says later is read and dropped, so that a full pipe never stops it.
        thread::spawn(move || for _ in lines {});
        Ok(Self { child, address, ready_after, said })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it as a crash of the process would.
    ///
    /// # Errors
    /// Where the system refuses.
    pub fn kill(mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(|_| ())
    }

    /// Asks it to stop (SIGTERM) and gives how long that took.
    ///
    /// # Errors
    /// Where it does not stop in time, or not with status 0.
    pub fn stop(mut self) -> io::Result<Duration> {
        let from = Instant::now();
        Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status()?;
        while from.elapsed() < STOP_MAX {
            if let Some(status) = self.child.try_wait()? {
                let error = || io::Error::other(format!("asked to stop, the server ended with {status}"));
                return if status.success() { Ok(from.elapsed()) } else { Err(error()) };
            }
            thread::sleep(Duration::from_millis(2));
        }
        Err(io::Error::new(io::ErrorKind::TimedOut, "the server did not stop when asked"))
    }

    /// Anonymous resident bytes: what is not page cache.
    ///
    /// # Errors
    /// Where the process is gone.
    pub fn anonymous_bytes(&self) -> io::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|l| l.strip_prefix("RssAnon:"));
        let kib = line.and_then(|l| l.split_whitespace().next()).and_then(|n| n.parse::<u64>().ok());
        kib.map(|k| k * 1024).ok_or_else(|| io::Error::other("no RssAnon in /proc"))
    }

    /// Processor time so far, in user and in system, each a number of ticks.
    fn user_and_system(&self) -> io::Result<[u64; 2]> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let mut fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().skip(11);
        let mut next =
            || fields.next().and_then(|n| n.parse().ok()).ok_or_else(|| io::Error::other("no times in /proc"));
        Ok([next()?, next()?])
    }

    fn ticks(&self) -> io::Result<u64> {
        Ok(self.user_and_system()?.iter().sum())
    }

    /// Runs `work`, and gives with what came of it the processor time that the server spent meanwhile: user, system.
    ///
    /// # Errors
    /// Those of `work`; where the process is gone.
    pub fn spending<T>(&self, work: impl FnOnce() -> io::Result<T>) -> io::Result<(T, [Duration; 2])> {
        let before = self.user_and_system()?;
        let done = work()?;
        let after = self.user_and_system()?;
        let time = |i: usize| Duration::from_millis(TICK_MILLIS * (after[i] - before[i]));
        Ok((done, [time(0), time(1)]))
    }

    /// Waits until it has come to rest (sealing and the like are done) and gives how long that took, the last quiet
    /// looks not counted. Gives up after a minute.
    ///
    /// # Errors
    /// Where the process is gone.
    pub fn settle(&self) -> io::Result<Duration> {
        let from = Instant::now();
        let (mut quiet, mut last) = (0, self.ticks()?);
        while quiet < QUIET_LOOKS && from.elapsed() < Duration::from_secs(60) {
            thread::sleep(LOOK);
            let now = self.ticks()?;
            quiet = if now - last <= QUIET_TICKS { quiet + 1 } else { 0 };
            last = now;
        }
        Ok(from.elapsed().saturating_sub(LOOK * quiet))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Bytes that the files under `dir` have, and bytes that they take on the disk.
///
/// # Errors
/// Where the directory cannot be read.
pub fn disk_bytes(dir: &Path) -> io::Result<(u64, u64)> {
    let (mut length, mut taken) = (0, 0);
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        // A file may be unlinked between the listing and the look at it.
        let Ok(meta) = entry.metadata() else { continue };
        if meta.is_dir() {
            let (l, t) = disk_bytes(&entry.path())?;
            (length, taken) = (length + l, taken + t);
        } else {
            (length, taken) = (length + meta.len(), taken + meta.blocks() * 512);
        }
    }
    Ok((length, taken))
}

/// A directory of the system's temporary place, removed when dropped.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// A new empty directory. `QUARRYDB_BENCH_DIR` says under which, where the temporary place is not a real disk.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub fn new(name: &str) -> io::Result<Self> {
        let parent = std::env::var_os("QUARRYDB_BENCH_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
        // Two of one name may live at once: the older is often dropped when the newer is there.
        let number = SCRATCHES.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("quarrydb-bench-{}-{number}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
