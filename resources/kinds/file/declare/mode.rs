//! Modes in the notation of the graph: octal with a leading zero, or symbolic as for chmod.

/// Permission bits as declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::kinds::file) enum Mode {
    /// Exactly these bits.
    Exact(u32),
    /// Changes of the present bits.
    Symbolic(Vec<Clause>),
}

/// One clause of a symbolic mode: `u=rw` or `go-wx`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::kinds::file) struct Clause {
    /// The bits of the affected users.
    who: u32,
    sign: Sign,
    /// The permissions for everybody (read, write, execute), and set-id and sticky.
    what: u32,
    /// `X`: execute for directories, and for files that somebody may already execute.
    execute_if_any: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    Set,
    Add,
    Take,
}

/// The expectation and a hint.
pub(in crate::kinds::file) type Wrong = (String, &'static str);

const FORMS: &str = "write octal with a leading zero (0644), or symbolic (u=rw,g=r,o=r)";

/// Returns the bits of a regular file with the bits `now` after a declared mode; none if the text is no mode.
pub(crate) fn mode_after(text: &str, now: u32) -> Option<u32> {
    Some(Mode::parse(text).ok()?.over(now, false))
}

impl Mode {
    pub(in crate::kinds::file) fn parse(text: &str) -> Result<Self, Wrong> {
        let octal = |text: &str| text.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
        let digits = text.strip_prefix("0o").or_else(|| text.strip_prefix('0'));
        if let Some(digits) = digits
            && (1..=4).contains(&digits.len())
            && octal(digits)
            && let Ok(bits) = u32::from_str_radix(digits, 8)
        {
            return Ok(Self::Exact(bits));
        }
        let shown: String = text.chars().take(20).flat_map(char::escape_default).collect();
        let starts_with_digit = text.bytes().next().is_some_and(|byte| byte.is_ascii_digit());
        if starts_with_digit {
            let hint = if (3..=4).contains(&text.len()) && octal(text) {
                "write an octal mode with a leading zero: 0644, not 644"
            } else {
                FORMS
            };
            return Err((format!("{shown} is not a mode"), hint));
        }
        let clauses: Option<Vec<Clause>> = text.split(',').map(clause).collect();
        clauses.map(Self::Symbolic).ok_or_else(|| (format!("{shown} is not a mode"), FORMS))
    }

    /// Returns true if the mode sets all bits, whatever the present ones are.
    pub(in crate::kinds::file) fn is_exact(&self) -> bool {
        matches!(self, Self::Exact(_))
    }

    /// Returns the bits after the change of an object that has the bits `now`.
    pub(in crate::kinds::file) fn over(&self, now: u32, is_directory: bool) -> u32 {
        match self {
            Self::Exact(bits) => *bits,
            Self::Symbolic(clauses) => {
                clauses.iter().fold(now, |now, clause| clause.over(now, is_directory))
            }
        }
    }
}

impl Clause {
    fn over(&self, now: u32, is_directory: bool) -> u32 {
        let any = if self.execute_if_any && (is_directory || now & 0o111 != 0) { 0o111 } else { 0 };
        let bits = (self.what | any) & self.who;
        match self.sign {
            Sign::Set => (now & !self.who) | bits,
            Sign::Add => now | bits,
            Sign::Take => now & !bits,
        }
    }
}

fn clause(text: &str) -> Option<Clause> {
    let at = text.find(['=', '+', '-'])?;
    let (whom, rest) = text.split_at_checked(at)?;
    let mut letters = rest.chars();
    let sign = match letters.next()? {
        '=' => Sign::Set,
        '+' => Sign::Add,
        _ => Sign::Take,
    };
    let mut who = 0;
    for letter in whom.chars() {
        who |= match letter {
            'u' => 0o4700,
            'g' => 0o2070,
            'o' => 0o1007,
            'a' => 0o7777,
            _ => return None,
        };
    }
    let (mut what, mut execute_if_any) = (0, false);
    for letter in letters {
        match letter {
            'r' => what |= 0o444,
            'w' => what |= 0o222,
            'x' => what |= 0o111,
            'X' => execute_if_any = true,
            's' => what |= 0o6000,
            't' => what |= 0o1000,
            _ => return None,
        }
    }
    let takes_nothing = what == 0 && !execute_if_any && sign != Sign::Set;
    (who != 0 && !takes_nothing).then_some(Clause { who, sign, what, execute_if_any })
}

#[cfg(test)]
mod tests {
    use super::Mode;

    /// S-10: octal needs its leading zero, and a bare number is rejected.
    #[test]
    fn octal_needs_its_zero() {
        for (text, bits) in [
            ("0644", 0o644),
            ("0741", 0o741),
            ("01777", 0o1777),
            ("04755", 0o4755),
            ("0o755", 0o755),
            ("00", 0),
        ] {
            assert_eq!(Mode::parse(text).unwrap(), Mode::Exact(bits), "{text}");
        }
        for text in
            ["644", "755", "0o", "0o8", "0", "0888", "012345", "-0644", "0644 ", "", "0x1ff"]
        {
            assert!(Mode::parse(text).is_err(), "{text}");
        }
        assert!(Mode::parse("644").unwrap_err().1.contains("0644"));
    }

    #[test]
    fn symbolic_modes() {
        for (text, now, directory, then) in [
            ("u=rw,g=r", 0o777, false, 0o647),
            ("u=rw,g=r,o=", 0o4777, false, 0o640),
            ("a=rX", 0o600, false, 0o444),
            ("a=rX", 0o700, true, 0o555),
            ("go-w", 0o666, false, 0o644),
            ("u+s,o+t", 0o755, false, 0o5755),
            ("g+x", 0o644, false, 0o654),
        ] {
            assert_eq!(Mode::parse(text).unwrap().over(now, directory), then, "{text}");
        }
        for text in ["rw", "u", "u=q", "=rw", "u=rw,", "z=r", "u+"] {
            assert!(Mode::parse(text).is_err(), "{text}");
        }
    }
}
