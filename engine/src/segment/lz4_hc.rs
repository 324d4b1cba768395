//! LZ4 blocks by the library that defines the format: packed with effort and a dictionary, and unpacked.
//!
//! Takes a dictionary once and then block after block; gives LZ4 blocks that any decoder unpacks with the same dictionary
//! before them (LZ4 block format, <https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md>). The dictionary is read in
//! once, not for each block. Unpacking takes any bytes; it is what a scan of documents does most.
#![allow(unsafe_code, reason = "the packing of a C library; what makes it sound stands at each block")]

use std::ffi::{c_char, c_int, c_void};
use std::ptr::NonNull;

// Links the library; it declares none of what is needed here.
use lz4_sys as _;

/// The most that one block may have: what the library takes, well below its own limit.
const BLOCK_BYTES_MAX: usize = 1 << 30;
/// The longest dictionary that LZ4 can refer to.
const WINDOW_BYTES: usize = 64 << 10;

unsafe extern "C" {
    fn LZ4_createStreamHC() -> *mut c_void;
    fn LZ4_freeStreamHC(stream: *mut c_void) -> c_int;
    fn LZ4_resetStreamHC_fast(stream: *mut c_void, level: c_int);
    fn LZ4_loadDictHC(stream: *mut c_void, dictionary: *const c_char, size: c_int) -> c_int;
    fn LZ4_attach_HC_dictionary(working: *mut c_void, dictionary: *const c_void);
    fn LZ4_compress_HC_continue(
        stream: *mut c_void,
        from: *const c_char,
        to: *mut c_char,
        from_bytes: c_int,
        to_bytes: c_int,
    ) -> c_int;
    fn LZ4_compressBound(bytes: c_int) -> c_int;
    fn LZ4_decompress_safe_usingDict(
        from: *const c_char,
        to: *mut c_char,
        from_bytes: c_int,
        to_bytes: c_int,
        dictionary: *const c_char,
        dictionary_bytes: c_int,
    ) -> c_int;
}

/// Unpacks a block into `raw`; how many bytes it has, none where it is no block that fits.
pub(super) fn unpack(packed: &[u8], raw: &mut [u8], dictionary: &[u8]) -> Option<usize> {
    let dictionary = dictionary.get(dictionary.len().saturating_sub(WINDOW_BYTES)..)?;
    let lengths = (c_int::try_from(packed.len()).ok()?, c_int::try_from(raw.len()).ok()?);
    // SAFETY: three slices of the lengths given, of which `raw` is borrowed alone and so apart from the others. For any bytes
    // the library reads within `packed`, `dictionary` and what it has written, and writes within `raw`; it keeps nothing.
    let unpacked = unsafe {
        let (from, to, known) = (packed.as_ptr().cast(), raw.as_mut_ptr().cast(), dictionary.as_ptr().cast());
        LZ4_decompress_safe_usingDict(from, to, lengths.0, lengths.1, known, dictionary.len() as c_int)
    };
    usize::try_from(unpacked).ok()
}

/// The library's state, freed when dropped.
struct Stream(NonNull<c_void>);

// SAFETY: the state is memory of its own, without thread-local or shared parts; it is used through `&mut` alone.
unsafe impl Send for Stream {}

impl Stream {
    fn new(level: c_int) -> Option<Self> {
        // SAFETY: takes nothing; gives null or a state that is ours.
        let stream = Self(NonNull::new(unsafe { LZ4_createStreamHC() })?);
        // SAFETY: the state was made above.
        unsafe { LZ4_resetStreamHC_fast(stream.0.as_ptr(), level) };
        Some(stream)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: the state was made by `LZ4_createStreamHC` and is freed once.
        unsafe { LZ4_freeStreamHC(self.0.as_ptr()) };
    }
}

/// Packs one block after another with a dictionary.
pub(super) struct Compressor {
    working: Stream,
    loaded: Stream,
    /// Referred to by `loaded` as long as both live.
    _dictionary: Box<[u8]>,
    level: c_int,
}

impl Compressor {
    /// With the last 64 KiB of `dictionary`; none without memory.
    pub(super) fn new(dictionary: &[u8], level: i32) -> Option<Self> {
        let dictionary: Box<[u8]> = dictionary.get(dictionary.len().saturating_sub(WINDOW_BYTES)..)?.into();
        let (working, loaded) = (Stream::new(level)?, Stream::new(level)?);
        // SAFETY: the state is ours; the dictionary's bytes are on the heap, are not moved or changed, and are dropped
        // after the state (fields drop in order). Its length is at most 64 KiB.
        unsafe { LZ4_loadDictHC(loaded.0.as_ptr(), dictionary.as_ptr().cast(), dictionary.len() as c_int) };
        Some(Self { working, loaded, _dictionary: dictionary, level })
    }

    /// Appends the packed block to `out`; how many bytes it took, none where the library refuses.
    pub(super) fn pack(&mut self, raw: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        if raw.is_empty() || raw.len() > BLOCK_BYTES_MAX {
            return None;
        }
        let (start, length) = (out.len(), raw.len() as c_int);
        // SAFETY: a calculation.
        let bound = unsafe { LZ4_compressBound(length) };
        out.resize(start + usize::try_from(bound).ok()?, 0);
        // SAFETY: both states are ours and live; `raw` and `out` are slices of the lengths given, and do not overlap.
        // Each block begins anew with the dictionary attached, so the library keeps no pointer to `raw` that it uses later.
        let packed = unsafe {
            LZ4_resetStreamHC_fast(self.working.0.as_ptr(), self.level);
            LZ4_attach_HC_dictionary(self.working.0.as_ptr(), self.loaded.0.as_ptr());
            let to = out.as_mut_ptr().add(start).cast();
            LZ4_compress_HC_continue(self.working.0.as_ptr(), raw.as_ptr().cast(), to, length, bound)
        };
        let packed = usize::try_from(packed).ok().filter(|&packed| packed > 0);
        out.truncate(start + packed.unwrap_or(0));
        packed
    }
}
