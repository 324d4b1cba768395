//! Cuts a stream of documents into blocks of whole ones: lines of NDJSON, or the elements of one JSON array.
//!
//! Takes a reader; gives blocks of about `BLOCK_BYTES` with bounded memory, whatever the stream's length. Knows JSON only
//! so far as to find where an element of an array ends; what an element is, `mod.rs` asks the parser.

use std::io::{self, Read};
use std::ops::Range;

/// About 1,800 documents of ordinary size.
pub(crate) const BLOCK_BYTES: usize = 512 << 10;
const BOM: &[u8] = b"\xef\xbb\xbf";

/// Whole documents on their way to the parser.
#[derive(Debug)]
pub(crate) struct Block {
    /// The text of all of them.
    pub(crate) text: Vec<u8>,
    /// What lies where.
    pub(crate) content: Content,
    /// Where the text begins in the stream, in bytes.
    pub(crate) offset: u64,
    /// The line ends in the text.
    pub(crate) line_ends: u64,
    /// Whether the stream ends here.
    pub(crate) last: bool,
}

/// What a block holds.
#[derive(Debug)]
pub(crate) enum Content {
    /// Lines; the last may lack its end.
    Lines,
    /// Elements of an array, each with the line ends before it in the text.
    Elements(Vec<(Range<usize>, u64)>),
    /// One line or element that is longer than allowed; its text was not kept.
    TooLong,
    /// The text is neither lines nor an array from here on: what is wrong.
    Broken(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Unknown,
    Lines,
    Array,
    /// After the array's end.
    AfterArray,
}

/// The state inside an array, kept across refills.
#[derive(Debug, Default)]
struct Scan {
    at: usize,
    depth: usize,
    in_string: bool,
    /// Where the element begins, once it has.
    element: Option<usize>,
    /// Elements seen since the array began; a comma must stand between two.
    comma_due: bool,
}

/// Cuts.
#[derive(Debug)]
pub(crate) struct Blocks<R> {
    reader: R,
    buffer: Vec<u8>,
    mode: Mode,
    scan: Scan,
    offset: u64,
    ended: bool,
    done: bool,
    longest: usize,
}

impl<R: Read> Blocks<R> {
    /// Over `reader`; a line or element longer than `longest` bytes is refused.
    pub(crate) fn new(reader: R, longest: usize) -> Self {
        Self {
            reader,
            buffer: Vec::new(),
            mode: Mode::Unknown,
            scan: Scan::default(),
            offset: 0,
            ended: false,
            done: false,
            longest: longest.max(BLOCK_BYTES),
        }
    }

    /// The next block; none after the last.
    ///
    /// # Errors
    /// The reader's.
    pub(crate) fn next(&mut self) -> io::Result<Option<Block>> {
        if self.done {
            return Ok(None);
        }
        self.fill(BLOCK_BYTES)?;
        if self.mode == Mode::Unknown {
            self.begin();
        }
        match self.mode {
            Mode::Lines | Mode::Unknown => self.lines(),
            Mode::Array | Mode::AfterArray => self.elements(),
        }
        .map(Some)
    }

    /// Skips a byte order mark and learns from the first byte that is no space what the stream is.
    fn begin(&mut self) {
        if self.buffer.starts_with(BOM) {
            self.buffer.drain(..BOM.len());
            self.offset += BOM.len() as u64;
        }
        if let Some(at) = self.buffer.iter().position(|b| !b.is_ascii_whitespace()) {
            self.mode = Mode::Lines;
            if self.buffer[at] == b'[' {
                self.mode = Mode::Array;
                self.scan.at = at + 1;
            }
        }
    }

    /// Reads until the buffer holds `bytes`, or the stream ends.
    fn fill(&mut self, bytes: usize) -> io::Result<()> {
        while !self.ended && self.buffer.len() < bytes {
            let from = self.buffer.len();
            self.buffer.resize(bytes, 0);
            match self.reader.read(&mut self.buffer[from..]) {
                Ok(n) => {
                    self.buffer.truncate(from + n);
                    self.ended = n == 0;
                }
                Err(e) => {
                    self.buffer.truncate(from);
                    if e.kind() != io::ErrorKind::Interrupted {
                        return Err(e);
                    }
                }
            }
        }
        Ok(())
    }

    fn lines(&mut self) -> io::Result<Block> {
        let mut searched = 0;
        loop {
            if self.ended {
                self.done = true;
                return Ok(self.cut(self.buffer.len(), Content::Lines));
            }
            if let Some(end) = memchr::memrchr(b'\n', &self.buffer[searched..]) {
                return Ok(self.cut(searched + end + 1, Content::Lines));
            }
            searched = self.buffer.len();
            if searched >= self.longest {
                self.skip_line()?;
                return Ok(self.cut_nothing(Content::TooLong));
            }
            self.fill((searched * 2).min(self.longest))?;
        }
    }

    /// Throws a line away without holding it.
    fn skip_line(&mut self) -> io::Result<()> {
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.buffer) {
                self.offset += end as u64;
                self.buffer.drain(..end);
                return Ok(());
            }
            self.offset += self.buffer.len() as u64;
            self.buffer.clear();
            if self.ended {
                return Ok(());
            }
            self.fill(BLOCK_BYTES)?;
        }
    }

    /// The first `end` bytes as a block; the rest stays.
    fn cut(&mut self, end: usize, content: Content) -> Block {
        let rest = self.buffer.split_off(end);
        let text = std::mem::replace(&mut self.buffer, rest);
        let line_ends = memchr::memchr_iter(b'\n', &text).count() as u64;
        let offset = self.offset;
        self.offset += text.len() as u64;
        Block { text, content, offset, line_ends, last: self.done }
    }

    fn cut_nothing(&mut self, content: Content) -> Block {
        Block { text: Vec::new(), content, offset: self.offset, line_ends: 0, last: self.done }
    }

    fn elements(&mut self) -> io::Result<Block> {
        let mut found: Vec<(Range<usize>, u64)> = Vec::new();
        let (mut counted_to, mut lines) = (0, 0);
        loop {
            match self.step() {
                Step::Element(range) => {
                    lines += memchr::memchr_iter(b'\n', &self.buffer[counted_to..range.start]).count() as u64;
                    counted_to = range.start;
                    found.push((range, lines));
                }
                Step::End => {
                    self.done = true;
                    let end = self.buffer.len();
                    self.scan.at = 0;
                    return Ok(self.cut(end, Content::Elements(found)));
                }
                Step::Wrong(what) => {
                    if found.is_empty() {
                        self.done = true;
                        let at = self.scan.at.min(self.buffer.len());
                        return Ok(self.cut(at, Content::Broken(what)));
                    }
                    return Ok(self.cut_elements(found));
                }
                Step::More => {
                    if !found.is_empty() {
                        return Ok(self.cut_elements(found));
                    }
                    if self.buffer.len() >= self.longest {
                        self.done = true;
                        return Ok(
                            self.cut_nothing(Content::Broken("an element of the array is longer than a body may be"))
                        );
                    }
                    let held = self.buffer.len();
                    self.fill((held * 2).clamp(BLOCK_BYTES, self.longest))?;
                    if self.ended && self.buffer.len() == held {
                        self.done = true;
                        return Ok(self.cut(held, Content::Broken("the array is not closed: the file is cut off")));
                    }
                }
            }
        }
    }

    /// A block up to the last element; what comes after stays.
    fn cut_elements(&mut self, found: Vec<(Range<usize>, u64)>) -> Block {
        let end = found.last().map_or(0, |(range, _)| range.end);
        self.scan.at -= end;
        self.scan.element = self.scan.element.map(|at| at - end);
        self.cut(end, Content::Elements(found))
    }

    /// Goes on to the end of the next element.
    fn step(&mut self) -> Step {
        let scan = &mut self.scan;
        while let Some(&byte) = self.buffer.get(scan.at) {
            if self.mode == Mode::AfterArray {
                if !byte.is_ascii_whitespace() {
                    return Step::Wrong("there is more after the end of the array");
                }
                scan.at += 1;
                continue;
            }
            let Some(start) = scan.element else {
                match byte {
                    b if b.is_ascii_whitespace() => {}
                    b',' if scan.comma_due => scan.comma_due = false,
                    b']' => self.mode = Mode::AfterArray,
                    b',' => return Step::Wrong("a comma without an element before it"),
                    _ if scan.comma_due => return Step::Wrong("a comma is missing between two elements of the array"),
                    _ => {
                        scan.element = Some(scan.at);
                        continue;
                    }
                }
                scan.at += 1;
                continue;
            };
            if scan.in_string {
                match memchr::memchr2(b'"', b'\\', &self.buffer[scan.at..]) {
                    None => {
                        scan.at = self.buffer.len();
                        return Step::More;
                    }
                    Some(n) if self.buffer[scan.at + n] == b'"' => {
                        scan.at += n + 1;
                        scan.in_string = false;
                    }
                    // The escaped byte may not be here yet.
                    Some(n) if scan.at + n + 1 >= self.buffer.len() => {
                        scan.at += n;
                        return Step::More;
                    }
                    Some(n) => scan.at += n + 2,
                }
            } else {
                match byte {
                    b'"' => scan.in_string = true,
                    b'{' | b'[' => scan.depth += 1,
                    b'}' | b']' if scan.depth > 0 => scan.depth -= 1,
                    b',' | b']' if scan.depth == 0 => {
                        scan.element = None;
                        scan.comma_due = true;
                        return Step::Element(start..scan.at);
                    }
                    _ => {}
                }
                scan.at += 1;
            }
        }
        if self.mode == Mode::AfterArray && self.ended { Step::End } else { Step::More }
    }
}

enum Step {
    Element(Range<usize>),
    End,
    Wrong(&'static str),
    More,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]
    use super::*;

    /// Gives the text in pieces of a few bytes, as a slow network does.
    struct Dribble<'a>(&'a [u8], usize);

    impl Read for Dribble<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let n = self.1.min(self.0.len()).min(out.len());
            out[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    fn pieces(text: &[u8], piece: usize) -> (Vec<String>, Option<&'static str>) {
        let mut blocks = Blocks::new(Dribble(text, piece), 1 << 20);
        let (mut out, mut wrong) = (Vec::new(), None);
        while let Some(block) = blocks.next().unwrap() {
            let string = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap().trim().to_owned();
            match block.content {
                Content::Lines => out.extend(block.text.split(|&b| b == b'\n').map(string).filter(|l| !l.is_empty())),
                Content::Elements(ranges) => out.extend(ranges.into_iter().map(|(r, _)| string(&block.text[r]))),
                Content::TooLong => out.push("too long".to_owned()),
                Content::Broken(what) => wrong = Some(what),
            }
        }
        (out, wrong)
    }

    #[test]
    fn lines_come_whole_with_or_without_their_last_end() {
        for text in ["{\"a\":1}\n{\"b\":2}", "{\"a\":1}\r\n{\"b\":2}\r\n", "\u{feff}{\"a\":1}\n\n  \n{\"b\":2}  \n"] {
            for piece in [1, 3, 1000] {
                let (found, wrong) = pieces(text.as_bytes(), piece);
                assert_eq!((found, wrong), (vec!["{\"a\":1}".to_owned(), "{\"b\":2}".to_owned()], None), "{text:?}");
            }
        }
        assert_eq!(pieces(b"", 1), (vec![], None));
    }

    #[test]
    fn elements_of_an_array_come_whole() {
        let text = " [ {\"a\":\"],[}{\\\"\\\\\"} ,\n[1,[2]], 3,\"x,y\" ,{}]\n ";
        let wanted = ["{\"a\":\"],[}{\\\"\\\\\"}", "[1,[2]]", "3", "\"x,y\"", "{}"];
        for piece in [1, 2, 7, 1000] {
            let (found, wrong) = pieces(text.as_bytes(), piece);
            assert_eq!(found, wanted, "pieces of {piece}");
            assert_eq!(wrong, None);
        }
        assert_eq!(pieces(b"[]", 1), (vec![], None));
    }

    #[test]
    fn a_broken_array_says_what_is_wrong_after_what_was_whole() {
        for (text, wanted) in [
            ("[{}", "not closed"),
            ("[{},", "not closed"),
            ("[{}]x", "more after"),
            ("[,{}]", "comma without"),
            ("[{},,{}]", "comma without"),
            ("[\"", "not closed"),
        ] {
            let (_, wrong) = pieces(text.as_bytes(), 2);
            assert!(wrong.unwrap_or_default().contains(wanted), "{text}: {wrong:?}");
        }
        assert_eq!(pieces(b"[{},{\"a\":1}", 1).0, ["{}"]);
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_the_next_is_read() {
        let text = [b"{\"a\":1}\n".as_slice(), &vec![b'x'; 3 << 20], b"\n{\"b\":2}\n"].concat();
        assert_eq!(pieces(&text, 1 << 16).0, ["{\"a\":1}", "too long", "{\"b\":2}"]);
    }

    #[test]
    fn offsets_and_lines_add_up() {
        let text = "{\"a\":1}\n".repeat(200_000);
        let mut blocks = Blocks::new(text.as_bytes(), 1 << 20);
        let (mut bytes, mut lines) = (0, 0);
        while let Some(block) = blocks.next().unwrap() {
            assert_eq!(block.offset, bytes);
            bytes += block.text.len() as u64;
            lines += block.line_ends;
        }
        assert_eq!((bytes, lines), (text.len() as u64, 200_000));
    }
}
