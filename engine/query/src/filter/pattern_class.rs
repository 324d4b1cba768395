//! Classes of Perl's regular expressions, `[a-z\d]`, translated: the part of `pattern_syntax.rs` that stands in brackets.

use super::pattern_syntax::{DIGIT, HORIZONTAL, SPACE, Translator, VERTICAL, WORD};

/// Escapes that stand for a set of characters.
const SET_ESCAPES: [char; 12] = ['d', 'D', 'w', 'W', 's', 'S', 'h', 'H', 'v', 'V', 'p', 'P'];

/// At most how many characters a range has, by what stands behind its hyphen.
fn range_work(rest: &str) -> u64 {
    let mut chars = rest.chars();
    match (chars.next(), chars.next()) {
        (Some('\\'), Some('x')) => match chars.as_str().strip_prefix('{').and_then(|rest| rest.split_once('}')) {
            Some((digits, _)) => u64::from_str_radix(digits, 16).unwrap_or(u64::from(u32::from(char::MAX))),
            None => 0x100,
        },
        (Some('\\'), Some('o')) => u64::from(u32::from(char::MAX)),
        // An escape that is left stands for an ASCII character, or for one of three octal digits.
        (Some('\\'), _) => 0x200,
        (Some(end), _) => u64::from(u32::from(end)),
        (None, _) => 0,
    }
}

impl Translator<'_> {
    /// A class, from behind its opening bracket.
    pub(super) fn class(&mut self) -> Result<(), String> {
        self.out.push('[');
        if self.peek() == Some('^') {
            self.skip(1);
            self.out.push('^');
        }
        let mut first = true;
        loop {
            let Some(c) = self.next() else { return Err("missing terminating ] for character class".to_owned()) };
            match c {
                ']' if !first => break,
                '[' if self.posix()? => {}
                '\\' => self.escape_in_class()?,
                '-' => self.hyphen(first),
                c if c.is_alphanumeric() || !c.is_ascii() => self.out.push(c),
                c => self.literal(c),
            }
            first = false;
        }
        self.out.push(']');
        Ok(())
    }

    /// A hyphen makes a range only between two characters: after a set or a range, first or last, it stands for itself.
    fn hyphen(&mut self, first: bool) {
        let last = self.peek() == Some(']');
        let after_set = self.out.ends_with(']') && !self.out.ends_with(r"\]") || self.out.ends_with('}');
        let before_set = {
            let rest = self.rest();
            rest.starts_with("[:") || (rest.starts_with('\\') && rest[1..].starts_with(SET_ESCAPES))
        };
        let is_range = !(first || last || after_set || before_set);
        if is_range {
            self.work += range_work(self.rest());
        }
        self.out.push_str(if is_range { "-" } else { r"\-" });
    }

    /// `[:alpha:]` in a class.
    fn posix(&mut self) -> Result<bool, String> {
        let Some(inner) = self.rest().strip_prefix(':') else { return Ok(false) };
        let Some((name, _)) = inner.split_once(":]") else { return Ok(false) };
        let (negated, name) = name.strip_prefix('^').map_or((false, name), |name| (true, name));
        if !name.chars().all(|c| c.is_ascii_lowercase()) {
            return Ok(false);
        }
        let text = format!("[:{}{name}:]", if negated { "^" } else { "" });
        self.skip(text.len() - 1);
        self.out.push_str(&text);
        Ok(true)
    }

    fn escape_in_class(&mut self) -> Result<(), String> {
        let Some(c) = self.next() else { return Err(r"\ at end of pattern".to_owned()) };
        match c {
            'd' | 'D' | 'w' | 'W' | 's' | 'S' | 'h' | 'H' | 'v' | 'V' => {
                let set = match c.to_ascii_lowercase() {
                    'd' => DIGIT,
                    'w' => WORD,
                    's' => SPACE,
                    'h' => HORIZONTAL,
                    _ => VERTICAL,
                };
                self.set(set, c.is_ascii_uppercase());
            }
            'b' => self.push_code(8),
            'p' | 'P' => self.property(c)?,
            'Q' => self.quoted(),
            'E' => {}
            'B' | 'R' | 'X' | 'N' => return Err(format!(r"escape sequence \{c} is invalid in character class")),
            // Octal, up to three digits: there are no back-references in a class.
            '0'..='7' => {
                let high = c.to_digit(8).unwrap_or(0);
                let before = self.rest().len();
                let low = self.digits(8, 2);
                let digits = before - self.rest().len();
                self.push_code(high * 8u32.pow(digits as u32) + low);
            }
            _ => {
                let code = self.character(c)?;
                self.push_code(code);
            }
        }
        Ok(())
    }
}
