//! From Perl's regular expressions, which MongoDB has, to those of the `regex` library, which run in linear time.
//!
//! Takes a pattern, gives the same one in the other syntax, or the name of what it needs and cannot have: references
//! back, looking around, atomic and possessive repetition, recursion, conditions, verbs. Only whether a text matches is
//! asked, never where, which lets `$` take a last newline with it. Differences that it bridges: `\d \w \s \b` are of
//! ASCII only; in a class `[`, `&&`, `--` and `~~` are nothing special; `{` that begins no repetition stands for itself;
//! `\Q...\E`, `\Z`, `\h`, `\v`, `\N`, `\e`, `\cX`, octal and short hexadecimal escapes.

use std::iter::Peekable;
use std::str::CharIndices;

/// Groups inside groups; the library has its own limit, this one bounds the stack of flags.
const GROUPS_DEEP_MAX: usize = 250;

/// The work of a Unicode property: as long as a range of so many characters takes.
const PROPERTY_WORK: u64 = 40_000;

pub(super) const DIGIT: &str = "0-9";
pub(super) const WORD: &str = "0-9A-Za-z_";
pub(super) const SPACE: &str = r"\t\n\x0B\f\r\x20";
pub(super) const HORIZONTAL: &str = r"\t\x20\x{A0}\x{1680}\x{180E}\x{2000}-\x{200A}\x{202F}\x{205F}\x{3000}";
pub(super) const VERTICAL: &str = r"\n\x0B\f\r\x{85}\x{2028}\x{2029}";

/// The flags that change how a pattern reads.
#[derive(Clone, Copy)]
struct Flags {
    multi_line: bool,
    extended: bool,
}

pub(super) struct Translator<'p> {
    pattern: &'p str,
    chars: Peekable<CharIndices<'p>>,
    pub(super) out: String,
    flags: Flags,
    /// The flags outside each open group.
    groups: Vec<Flags>,
    /// Whether something stands before that a repetition can repeat, and whether it is itself a repetition.
    after_repetition: bool,
    /// What the library will do before it knows the size of the whole: characters of classes.
    pub(super) work: u64,
}

/// Translates a pattern; gives what compiling it will take too, as `limits::PATTERN_WORK_MAX` counts.
///
/// # Errors
/// What it needs and cannot have, in words.
pub(crate) fn translate(pattern: &str, multi_line: bool, extended: bool) -> Result<(String, u64), String> {
    let mut translator = Translator {
        pattern,
        chars: pattern.char_indices().peekable(),
        out: String::with_capacity(pattern.len() + 16),
        flags: Flags { multi_line, extended },
        groups: Vec::new(),
        after_repetition: false,
        work: 0,
    };
    if let Some(verb) = pattern.strip_prefix("(*") {
        let verb = verb.split(')').next().unwrap_or_default();
        return Err(unsupported(&format!("the verb (*{verb})")));
    }
    translator.run()?;
    Ok((translator.out, translator.work))
}

fn unsupported(what: &str) -> String {
    format!("{what} is not supported: expressions run in time linear in the text")
}

impl<'p> Translator<'p> {
    pub(super) fn next(&mut self) -> Option<char> {
        self.chars.next().map(|(_, c)| c)
    }

    pub(super) fn peek(&mut self) -> Option<char> {
        self.chars.peek().map(|(_, c)| *c)
    }

    /// The pattern from the next character on.
    pub(super) fn rest(&mut self) -> &'p str {
        let at = self.chars.peek().map_or(self.pattern.len(), |(at, _)| *at);
        &self.pattern[at..]
    }

    pub(super) fn skip(&mut self, count: usize) {
        for _ in 0..count {
            self.chars.next();
        }
    }

    fn run(&mut self) -> Result<(), String> {
        while let Some(c) = self.next() {
            let repetition = std::mem::take(&mut self.after_repetition);
            match c {
                '\\' => self.escape()?,
                '[' => self.class()?,
                '(' => self.group()?,
                ')' => {
                    self.flags = self.groups.pop().ok_or("unmatched closing parenthesis")?;
                    self.out.push(')');
                }
                '$' if !self.flags.multi_line => self.out.push_str(r"(?:\n?\z)"),
                '{' => match repetition_len(self.rest()) {
                    Some(len) => {
                        self.out.push('{');
                        for _ in 0..len {
                            let c = self.next().unwrap_or('}');
                            self.out.push(c);
                        }
                        // A counted repetition may repeat another: `a{2}{3}`.
                        self.repetition(false)?;
                    }
                    None => self.out.push_str(r"\{"),
                },
                '*' | '+' | '?' => {
                    self.out.push(c);
                    self.repetition(repetition)?;
                }
                '#' if self.flags.extended => while self.next().is_some_and(|c| c != '\n') {},
                c if self.flags.extended && c.is_ascii_whitespace() => self.after_repetition = repetition,
                '}' | ']' | '-' | '&' | '~' | '#' => self.literal(c),
                c => self.out.push(c),
            }
        }
        if self.groups.is_empty() { Ok(()) } else { Err("missing closing parenthesis".to_owned()) }
    }

    /// After a repetition: `?` makes it lazy, `+` possessive.
    fn repetition(&mut self, twice: bool) -> Result<(), String> {
        if twice {
            return Err("quantifier does not follow a repeatable item".to_owned());
        }
        match self.peek() {
            Some('+') => return Err(unsupported("a possessive quantifier")),
            Some('?') => {
                self.skip(1);
                self.out.push('?');
            }
            _ => {}
        }
        self.after_repetition = true;
        Ok(())
    }

    pub(super) fn literal(&mut self, c: char) {
        if c.is_ascii() && !c.is_ascii_alphanumeric() {
            if c.is_ascii_whitespace() || c.is_ascii_control() || c == '<' || c == '>' {
                self.out.push_str(&format!(r"\x{:02X}", c as u32));
                return;
            }
            self.out.push('\\');
        }
        self.out.push(c);
    }

    fn group(&mut self) -> Result<(), String> {
        if self.groups.len() >= GROUPS_DEEP_MAX {
            return Err(format!("groups nested deeper than {GROUPS_DEEP_MAX}"));
        }
        if self.peek() == Some('*') {
            return Err(unsupported("a verb (*...)"));
        }
        let outer = self.flags;
        if self.peek() != Some('?') {
            self.out.push('(');
            self.groups.push(outer);
            return Ok(());
        }
        self.skip(1);
        let rest = self.rest();
        for (opening, what) in [
            ("=", "look-ahead (?=...)"),
            ("!", "negative look-ahead (?!...)"),
            ("<=", "look-behind (?<=...)"),
            ("<!", "negative look-behind (?<!...)"),
            (">", "an atomic group (?>...)"),
            ("|", "a branch reset group (?|...)"),
            ("(", "a conditional group (?(...)...)"),
            ("R", "recursion (?R)"),
            ("P>", "recursion (?P>...)"),
            ("&", "recursion (?&...)"),
            ("P=", "a back-reference (?P=...)"),
            ("C", "a callout (?C)"),
            ("+", "recursion (?+1)"),
        ] {
            if rest.starts_with(opening) {
                return Err(unsupported(what));
            }
        }
        if rest.starts_with(|c: char| c.is_ascii_digit())
            || (rest.starts_with('-') && rest[1..].starts_with(|c: char| c.is_ascii_digit()))
        {
            return Err(unsupported("recursion (?1)"));
        }
        if rest.starts_with('#') {
            while let Some(c) = self.next() {
                if c == ')' {
                    return Ok(());
                }
            }
            return Err("missing ) after (?# comment".to_owned());
        }
        // A name is of no use where nobody asks for groups, and may be one that the library refuses.
        let name_end = match (rest.starts_with("P<"), rest.starts_with('<'), rest.starts_with('\'')) {
            (true, ..) | (_, true, _) => Some('>'),
            (.., true) => Some('\''),
            _ => None,
        };
        if let Some(end) = name_end {
            self.skip(if rest.starts_with("P<") { 2 } else { 1 });
            while let Some(c) = self.next() {
                if c == end {
                    self.out.push('(');
                    self.groups.push(outer);
                    return Ok(());
                }
                if c != '_' && !c.is_alphanumeric() {
                    break;
                }
            }
            return Err("syntax error in subpattern name".to_owned());
        }
        self.inline_flags(outer)
    }

    /// `(?i)` for the rest of the group, `(?i:...)` for one of its own.
    fn inline_flags(&mut self, outer: Flags) -> Result<(), String> {
        let (mut flags, mut on, mut text) = (outer, true, String::new());
        while let Some(c) = self.next() {
            match c {
                '-' if on => on = false,
                'i' | 's' => {}
                'm' => flags.multi_line = on,
                'x' => flags.extended = on,
                ':' | ')' => {
                    self.out.push_str("(?");
                    self.out.push_str(text.trim_end_matches('-'));
                    self.out.push(c);
                    if c == ':' {
                        self.groups.push(outer);
                    }
                    self.flags = flags;
                    return Ok(());
                }
                _ => return Err(format!("unrecognized character {c:?} after (? or (?-")),
            }
            text.push(c);
        }
        Err("missing closing parenthesis".to_owned())
    }

    fn escape(&mut self) -> Result<(), String> {
        let Some(c) = self.next() else { return Err(r"\ at end of pattern".to_owned()) };
        match c {
            'd' => self.set(DIGIT, false),
            'D' => self.set(DIGIT, true),
            'w' => self.set(WORD, false),
            'W' => self.set(WORD, true),
            's' => self.set(SPACE, false),
            'S' => self.set(SPACE, true),
            'h' => self.set(HORIZONTAL, false),
            'H' => self.set(HORIZONTAL, true),
            'v' => self.set(VERTICAL, false),
            'V' => self.set(VERTICAL, true),
            'N' => self.out.push_str(r"[^\n]"),
            'R' => self.out.push_str(r"(?:\r\n|[\n\x0B\f\r\x{85}\x{2028}\x{2029}])"),
            'b' => self.out.push_str(r"(?-u:\b)"),
            'B' => self.out.push_str(r"(?-u:\B)"),
            'A' => self.out.push_str(r"\A"),
            'z' => self.out.push_str(r"\z"),
            'Z' => self.out.push_str(r"(?:\n?\z)"),
            'p' | 'P' => self.property(c)?,
            'Q' => self.quoted(),
            'E' => {}
            'K' => return Err(unsupported(r"\K")),
            'G' => return Err(unsupported(r"\G")),
            'X' => return Err(unsupported(r"\X")),
            'C' => return Err(unsupported(r"\C")),
            'g' => return Err(unsupported(r"a back-reference or recursion \g")),
            'k' => return Err(unsupported(r"a back-reference \k")),
            '1'..='9' => return Err(unsupported(&format!(r"a back-reference \{c}"))),
            _ => {
                let code = self.character(c)?;
                self.push_code(code);
            }
        }
        Ok(())
    }

    /// The character that an escape stands for.
    pub(super) fn character(&mut self, c: char) -> Result<u32, String> {
        Ok(match c {
            'a' => 7,
            'e' => 0x1b,
            'f' => 0x0c,
            'n' => 0x0a,
            'r' => 0x0d,
            't' => 9,
            'c' => match self.next() {
                Some(c) if c.is_ascii() => u32::from(c.to_ascii_uppercase()) ^ 0x40,
                _ => return Err(r"\c must be followed by an ASCII character".to_owned()),
            },
            'o' => self.braced(8)?.ok_or(r"missing opening brace after \o")?,
            'x' => match self.braced(16)? {
                Some(code) => code,
                None => self.digits(16, 2),
            },
            '0' => self.digits(8, 2),
            c if c.is_ascii_alphanumeric() => return Err(format!(r"unrecognized character {c:?} follows \")),
            c => u32::from(c),
        })
    }

    pub(super) fn digits(&mut self, radix: u32, most: usize) -> u32 {
        let mut code = 0;
        for _ in 0..most {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(radix)) else { break };
            self.skip(1);
            code = code * radix + digit;
        }
        code
    }

    fn braced(&mut self, radix: u32) -> Result<Option<u32>, String> {
        let Some(inner) = self.rest().strip_prefix('{') else { return Ok(None) };
        let digits = inner.split('}').next().unwrap_or_default().to_owned();
        let code = u32::from_str_radix(&digits, radix).map_err(|_| format!("{digits:?} in braces is no character"))?;
        self.skip(digits.chars().count() + 2);
        Ok(Some(code))
    }

    pub(super) fn push_code(&mut self, code: u32) {
        match char::from_u32(code) {
            Some(c) if c.is_alphanumeric() || !c.is_ascii() => self.out.push(c),
            Some(c) => self.literal(c),
            // Not a character: let the library say so.
            None => self.out.push_str(&format!(r"\x{{{code:X}}}")),
        }
    }

    pub(super) fn set(&mut self, set: &str, negated: bool) {
        self.out.push_str(if negated { "[^" } else { "[" });
        self.out.push_str(set);
        self.out.push(']');
    }

    /// `\p{Name}`, `\pL`, `\p{^Name}`.
    pub(super) fn property(&mut self, c: char) -> Result<(), String> {
        let (name, len) = match self.rest().strip_prefix('{') {
            Some(inner) => {
                let name = inner.split_once('}').ok_or(r"missing } after \p{")?.0.to_owned();
                let len = name.chars().count() + 2;
                (name, len)
            }
            None => (self.peek().ok_or(r"malformed \P or \p sequence")?.to_string(), 1),
        };
        self.skip(len);
        let (name, inverted) = match name.strip_prefix('^') {
            Some(name) => (name, true),
            None => (&*name, false),
        };
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '&') {
            return Err(r"malformed \P or \p sequence".to_owned());
        }
        // Letters with a case: another name for `LC`.
        let name = if name == "L&" { "LC" } else { name };
        self.work += PROPERTY_WORK;
        let letter = if (c == 'P') ^ inverted { 'P' } else { 'p' };
        self.out.push_str(&format!(r"\{letter}{{{name}}}"));
        Ok(())
    }

    pub(super) fn quoted(&mut self) {
        while !self.rest().starts_with(r"\E") {
            match self.next() {
                Some(c) => self.push_code(u32::from(c)),
                None => return,
            }
        }
        self.skip(2);
    }
}

/// The characters after `{` up to and with `}`, where they are a repetition: `{n}`, `{n,}`, `{n,m}`.
fn repetition_len(rest: &str) -> Option<usize> {
    let inner = rest.split_once('}')?.0;
    let (least, most) = inner.split_once(',').unwrap_or((inner, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    (!least.is_empty() && digits(least) && digits(most)).then_some(inner.len() + 1)
}

#[cfg(test)]
#[path = "pattern_syntax_tests.rs"]
mod tests;
