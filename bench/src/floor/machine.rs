//! Floors without a server: a synced append, simd-json's tape over the documents, bytes copied once and sent.

use crate::dataset::Lines;
use simd_json::{Buffers, Tape};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;
use std::time::Instant;

/// What one synced append writes.
const SYNC_BYTES: usize = 4096;
/// What one send hands to the kernel.
const PIECE_BYTES: usize = 256 * 1024;

/// A file of `bytes` zeros, synced: appends into it change no length and no extent.
///
/// # Errors
/// Where the file cannot be written.
pub fn preallocated(path: &Path, bytes: u64) -> io::Result<File> {
    let file = OpenOptions::new().create(true).truncate(true).read(true).write(true).open(path)?;
    let zeros = vec![0_u8; 1 << 20];
    let mut at = 0;
    while at < bytes {
        let n = (bytes - at).min(zeros.len() as u64);
        file.write_all_at(&zeros[..n as usize], at)?;
        at += n;
    }
    file.sync_all()?;
    Ok(file)
}

/// Microseconds of one 4 KiB append with fdatasync, the middle of `times`.
///
/// # Errors
/// Where the file cannot be written.
pub fn sync_micros(dir: &Path, times: usize) -> io::Result<f64> {
    let path = dir.join("sync-floor");
    let file = preallocated(&path, (times * SYNC_BYTES) as u64)?;
    let block = [0x5a_u8; SYNC_BYTES];
    let mut micros = Vec::with_capacity(times);
    for i in 0..times {
        let from = Instant::now();
        file.write_all_at(&block, (i * SYNC_BYTES) as u64)?;
        file.sync_data()?;
        micros.push(from.elapsed().as_secs_f64() * 1e6);
    }
    std::fs::remove_file(&path)?;
    Ok(crate::load::median(&micros))
}

/// Documents a second through simd-json's tape, one core, buffers kept from one to the next.
///
/// # Panics
/// Where a document is not JSON.
#[must_use]
pub fn parse_rate(lines: &Lines) -> f64 {
    let mut buffers = Buffers::new(PIECE_BYTES);
    let mut kept = Tape::null();
    let mut copy = Vec::with_capacity(1024);
    let mut nodes = 0;
    let from = Instant::now();
    for line in lines.iter() {
        copy.clear();
        copy.extend_from_slice(line);
        let mut tape = kept.reset();
        simd_json::fill_tape(&mut copy, &mut buffers, &mut tape).expect("the documents are JSON");
        nodes += tape.0.len();
        kept = tape.reset();
    }
    std::hint::black_box(nodes);
    lines.len() as f64 / from.elapsed().as_secs_f64()
}

/// Bytes a second of `text`, copied once and sent over loopback to a reader that drops them.
///
/// # Errors
/// Where loopback does not work.
///
/// # Panics
/// Where the sending thread does.
pub fn print_rate(text: &[u8]) -> io::Result<f64> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::scope(|scope| {
        let sender = scope.spawn(move || -> io::Result<()> {
            let (mut stream, _) = listener.accept()?;
            let mut asked = [0_u8; 1];
            stream.read_exact(&mut asked)?;
            let mut copy = vec![0_u8; PIECE_BYTES];
            for piece in text.chunks(PIECE_BYTES) {
                let to = &mut copy[..piece.len()];
                to.copy_from_slice(piece);
                stream.write_all(to)?;
            }
            Ok(())
        });
        let mut stream = TcpStream::connect(address)?;
        let mut buffer = vec![0_u8; PIECE_BYTES];
        let from = Instant::now();
        stream.write_all(b"!")?;
        let mut received = 0;
        while received < text.len() {
            match stream.read(&mut buffer)? {
                0 => break,
                n => received += n,
            }
        }
        let elapsed = from.elapsed();
        sender.join().expect("the sender does not panic")?;
        Ok(received as f64 / elapsed.as_secs_f64())
    })
}
