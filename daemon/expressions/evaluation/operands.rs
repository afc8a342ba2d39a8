//! The work of operators. The engine compares, joins and indexes values without a hook, and a text of several
//! megabytes costs as little as a number. A filter behind each operand charges the bytes that the operator reads.
//!
//! The filters are added as text of the template, like the checks of bound values.

/// The filter of an operand that is compared, of a key and of an index.
pub(super) const COMPARED: &str = "_sf_compared";
/// The filter of the right side of `in`: a map is not read as a whole.
pub(super) const SEARCHED: &str = "_sf_searched";
/// The filter of an operand of `~`.
pub(super) const JOINED: &str = "_sf_joined";
/// The filter of an operand of `+`.
pub(super) const ADDED: &str = "_sf_added";
/// The filter of a factor of `*`.
pub(super) const FACTOR: &str = "_sf_factor";
/// The filter of a value before `[`.
pub(super) const INDEXED: &str = "_sf_indexed";

/// The parenthesis before a value that is indexed; nobody else writes it.
pub(super) const OPEN: &str = "(\t\t\t\t\t";

/// The maximum number of indexes behind one value: the engine needs stack for each.
const MOST_INDEXES: usize = 16;

/// The maximum number of `+` in a row: the engine copies the lists before for each.
const MOST_ADDED: usize = 60;

/// A text that is added to code, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Insertion {
    pub(super) at: usize,
    pub(super) text: String,
}

/// The sort of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Word,
    Number,
    Quoted,
    Sign,
}

/// A word, number, text or sign in code, with its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    pub(super) text: &'a str,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Returns the next token of code.
pub(super) fn next_token(code: &str, from: usize) -> Option<Token<'_>> {
    let rest = code.get(from..)?;
    let start = from + (rest.len() - rest.trim_start().len());
    let rest = code.get(start..)?;
    let first = rest.chars().next()?;
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let (kind, length) = match first {
        '"' | '\'' => {
            let mut is_escaped = false;
            let close = rest.char_indices().skip(1).find(|(_, letter)| {
                let is_close = !is_escaped && *letter == first;
                is_escaped = !is_escaped && *letter == '\\';
                is_close
            });
            (Kind::Quoted, close.map_or(rest.len(), |(at, _)| at + 1))
        }
        c if c.is_ascii_digit() => {
            let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            (Kind::Number, end)
        }
        c if is_word(c) => (Kind::Word, rest.find(|c| !is_word(c)).unwrap_or(rest.len())),
        _ => {
            let two = ["==", "!=", "<=", ">=", "//", "**"];
            let length = if two.iter().any(|sign| rest.starts_with(sign)) { 2 } else { 1 };
            (Kind::Sign, if length == 2 { 2 } else { first.len_utf8() })
        }
    };
    let text = rest.get(..length)?;
    Some(Token { kind, text, start, end: start + length })
}

/// The sort of a bracket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bracket {
    /// A group, a list, the values of a call.
    Plain,
    /// An index, or the values of `loop.changed`: they are compared.
    Compared,
    /// A map: its keys are compared.
    Map,
}

/// The operands between two brackets, commas or words such as `and`.
#[derive(Debug, Default)]
struct Segment {
    operands: Vec<Operand>,
    current: Operand,
    is_compared: bool,
}

/// The ends of the values of one operand.
#[derive(Debug, Default)]
struct Operand {
    ends: Vec<usize>,
    is_joined: bool,
    is_searched: bool,
    added: usize,
    factors: Vec<usize>,
    is_factor_next: bool,
}

/// The value that ends with the last token.
#[derive(Clone, Copy, Debug, Default)]
struct Chain {
    start: Option<usize>,
    indexes: usize,
}

#[derive(Debug)]
struct Level {
    bracket: Bracket,
    segment: Segment,
    /// The value before the bracket, of which it is a part.
    chain: Chain,
}

/// The state of one pass over the code between two delimiters.
struct Pass<'a> {
    levels: Vec<Level>,
    insertions: Vec<Insertion>,
    /// The last token, if a value can end with it.
    value_end: Option<usize>,
    chain: Chain,
    last: [&'a str; 2],
    /// True behind the `in` of a loop, which compares nothing.
    is_behind_loop: bool,
}

/// Returns the filters that the operands of code need, or the offset of code that the engine cannot evaluate with the
/// reason.
pub(super) fn charged_operands(
    code: &str,
    is_tag: bool,
) -> Result<Vec<Insertion>, (usize, String)> {
    let mut pass = Pass::new();
    let mut at = code.len() - code.trim_start_matches(['-', '+']).len();
    let end = code.trim_end_matches(['-', '+']).len();
    let mut tag = "";
    while let Some(token) = next_token(code, at).filter(|token| token.end <= end) {
        at = token.end;
        if is_tag && tag.is_empty() {
            tag = token.text;
            continue;
        }
        let next = next_token(code, at).map_or("", |next| next.text);
        match token.kind {
            Kind::Word => pass.word(token, tag, next),
            Kind::Number if pass.last[0] == "." => pass.value_end = Some(token.end),
            Kind::Number | Kind::Quoted => pass.literal(),
            Kind::Sign => pass.sign(token, (code, at), next)?,
        }
        pass.last = [token.text, pass.last[0]];
    }
    pass.finish_segment(false);
    pass.insertions.sort_by_key(|insertion| insertion.at);
    Ok(pass.insertions)
}

impl<'a> Pass<'a> {
    fn new() -> Self {
        let outer =
            Level { bracket: Bracket::Plain, segment: Segment::default(), chain: Chain::default() };
        Self {
            levels: vec![outer],
            insertions: Vec::new(),
            value_end: None,
            chain: Chain::default(),
            last: ["", ""],
            is_behind_loop: false,
        }
    }

    fn literal(&mut self) {
        self.value_end = None;
        self.chain = Chain::default();
    }

    fn word(&mut self, token: Token<'a>, tag: &str, next: &str) {
        let before = self.last;
        let is_test = before[0] == "is" || (before == ["not", "is"]);
        if before[0] == "." {
            self.value_end = Some(token.end);
            return;
        }
        if before[0] == "|" || (is_test && token.text != "not") {
            self.value_end = Some(token.end);
            self.chain = Chain::default();
            return;
        }
        let is_head_of_loop = tag == "for" && self.levels.len() == 1;
        let is_end = match token.text {
            "and" | "or" | "if" | "else" => true,
            "recursive" => is_head_of_loop,
            "ignore" | "as" => matches!(tag, "include" | "import" | "from"),
            "not" => before[0] != "is" && next != "in",
            "in" => is_head_of_loop && !std::mem::replace(&mut self.is_behind_loop, true),
            _ => false,
        };
        match token.text {
            _ if is_end => self.finish_segment(false),
            "in" => {
                self.compare();
                self.segment().current.is_searched = true;
            }
            "not" | "is" => {}
            _ => {
                self.value_end = Some(token.end);
                self.chain = Chain { start: Some(token.start), indexes: 0 };
                return;
            }
        }
        if token.text != "not" || next != "in" {
            self.literal();
        }
    }

    fn sign(
        &mut self,
        token: Token<'a>,
        (code, at): (&str, usize),
        next: &str,
    ) -> Result<(), (usize, String)> {
        match token.text {
            "==" | "!=" | "<" | ">" | "<=" | ">=" => self.compare(),
            "~" => {
                self.finish_value();
                let operand = &mut self.segment().current;
                (operand.is_joined, operand.is_factor_next) = (true, false);
            }
            "+" => {
                self.finish_value();
                let operand = &mut self.segment().current;
                operand.is_factor_next = false;
                operand.added += 1;
                if operand.added > MOST_ADDED {
                    let what = format!("there are at most {MOST_ADDED} `+` in a row");
                    return Err((token.start, what));
                }
            }
            "*" => {
                let end = self.value_end;
                self.finish_value();
                let operand = &mut self.segment().current;
                if operand.factors.last().copied() != end {
                    operand.factors.extend(end);
                }
                operand.is_factor_next = true;
            }
            // A minus behind `*` is the sign of the factor.
            "-" => self.finish_value(),
            "/" | "//" | "%" | "**" => {
                self.finish_value();
                self.segment().current.is_factor_next = false;
            }
            "," | "=" => self.finish_segment(false),
            ":" => {
                let is_key = self.levels.last().is_some_and(|it| it.bracket == Bracket::Map);
                self.finish_segment(is_key);
            }
            "(" | "[" | "{" => return self.open(token, (code, at), next),
            ")" | "]" | "}" => {
                self.close(token.end);
                return Ok(());
            }
            "." | "|" => return Ok(()),
            _ => {}
        }
        self.literal();
        Ok(())
    }

    fn open(
        &mut self,
        token: Token<'a>,
        (code, at): (&str, usize),
        next: &str,
    ) -> Result<(), (usize, String)> {
        let mut chain = self.chain;
        let is_part = self.value_end.is_some() && token.text != "{";
        let mut bracket = match (token.text, is_part) {
            ("{", _) => Bracket::Map,
            ("[", true) => Bracket::Compared,
            ("(", true) if self.last == ["changed", "."] => Bracket::Compared,
            _ => Bracket::Plain,
        };
        if token.text == "(" && self.last == ["cycle", "."] && matches!(next, ")" | "*") {
            return Err((token.start, "`cycle` wants its values one by one".to_owned()));
        }
        if !is_part {
            chain = Chain { start: Some(token.start), indexes: 0 };
        }
        if bracket == Bracket::Compared && token.text == "[" {
            let index = next_token(code, at);
            let behind = index.and_then(|index| next_token(code, index.end));
            let is_key = index.is_some_and(|it| it.kind == Kind::Quoted)
                && behind.is_some_and(|it| it.text == "]");
            if let (Some(start), Some(end), false) = (chain.start, self.value_end, is_key) {
                chain.indexes += 1;
                if chain.indexes > MOST_INDEXES {
                    let what = format!("a value has at most {MOST_INDEXES} indexes");
                    return Err((token.start, what));
                }
                self.insert(start, OPEN.to_owned());
                self.insert(end, format!("|{INDEXED})"));
            }
            if is_key {
                bracket = Bracket::Plain;
            }
        }
        self.levels.push(Level { bracket, segment: Segment::default(), chain });
        self.literal();
        Ok(())
    }

    fn close(&mut self, end: usize) {
        self.finish_segment(false);
        let closed = if self.levels.len() > 1 { self.levels.pop() } else { None };
        self.chain = closed.map_or_else(Chain::default, |level| level.chain);
        self.value_end = Some(end);
    }

    fn segment(&mut self) -> &mut Segment {
        let last = self.levels.len() - 1;
        &mut self.levels[last].segment
    }

    fn insert(&mut self, at: usize, text: String) {
        self.insertions.push(Insertion { at, text });
    }

    fn finish_value(&mut self) {
        let Some(end) = self.value_end.take() else { return };
        let operand = &mut self.segment().current;
        operand.ends.push(end);
        if std::mem::take(&mut operand.is_factor_next) {
            operand.factors.push(end);
        }
    }

    fn compare(&mut self) {
        self.finish_value();
        let segment = self.segment();
        segment.is_compared = true;
        let operand = std::mem::take(&mut segment.current);
        segment.operands.push(operand);
    }

    fn finish_segment(&mut self, is_key: bool) {
        self.compare_last();
        let level_compares =
            self.levels.last().is_some_and(|level| level.bracket == Bracket::Compared);
        let segment = std::mem::take(self.segment());
        let is_compared = is_key || level_compares || segment.is_compared;
        for operand in segment.operands {
            for end in &operand.factors {
                self.insert(*end, format!("|{FACTOR}"));
            }
            if operand.added > 0 {
                for end in &operand.ends {
                    self.insert(*end, format!("|{ADDED}"));
                }
            }
            let filter = match &operand {
                Operand { is_joined: true, .. } => JOINED,
                _ if !is_compared => continue,
                Operand { is_searched: true, .. } => SEARCHED,
                _ => COMPARED,
            };
            for end in operand.ends {
                self.insert(end, format!("|{filter}"));
            }
        }
    }

    /// Adds the operand behind the last comparison.
    fn compare_last(&mut self) {
        self.finish_value();
        let segment = self.segment();
        let operand = std::mem::take(&mut segment.current);
        segment.operands.push(operand);
    }
}

#[cfg(test)]
mod tests {
    use super::{ADDED, COMPARED, FACTOR, INDEXED, JOINED, OPEN, SEARCHED, charged_operands};

    /// Returns the code with `?` for a compared operand, `@` for a searched one, `~` for a joined one, and `<` with `>`
    /// around an indexed one.
    fn charged(code: &str, is_tag: bool) -> String {
        let mut text = code.to_owned();
        for insertion in charged_operands(code, is_tag).expect("code").into_iter().rev() {
            let sign = match insertion.text.trim_start_matches('|').trim_end_matches(')') {
                COMPARED => "?",
                ADDED => "+",
                FACTOR => "*",
                SEARCHED => "@",
                JOINED => "$",
                INDEXED => ">",
                open if open == OPEN => "<",
                other => other,
            };
            text.insert_str(insertion.at, sign);
        }
        text
    }

    #[test]
    fn operands_of_operators_are_found() {
        for (code, wanted) in [
            (" a ", " a "),
            (" a.b|upper == 'x' ", " a.b|upper? == 'x' "),
            ("- a<b and c -", "- a?<b? and c -"),
            (" not a == b.c(d) or e ", " not a? == b.c(d)? or e "),
            (" a ~ b.c ~ 'x' ", " a$ ~ b.c$ ~ 'x' "),
            (" a ~ b == c + d ", " a$ ~ b$ == c+? + d+? "),
            (" a + b[1] - 2 ", " a+ + <b>[1]+ - 2 "),
            (" a * 2 ~ b.c ** d * -e * f ", " a*$ * 2 ~ b.c$ ** d*$ * -e*$ * f*$ "),
            (" a in b ", " a? in b@ "),
            (" a not in b if c else d ", " a? not in b@ if c else d "),
            (" a[i] ", " <a>[i?] "),
            (" a.b[1:][c[0]] ", " <<a.b>[1:]>[<c>[0]?] "),
            (" a['key'] ", " a['key'] "),
            (" f(x)[0] ", " <f(x)>[0] "),
            (" [a, b] == (c) ", " [a, b]? == (c)? "),
            (" {a: b, 'c': d} ", " {a?: b, 'c': d} "),
            (" f(a == b, c=d) ", " f(a? == b?, c=d) "),
            (" a is defined and b is eq c ", " a is defined and b is eq c "),
            (" loop.changed(a, b) ", " loop.changed(a?, b?) "),
            (" a if b < 3 else c ", " a if b? < 3 else c "),
            (" -a ** b > c ", " -a? ** b? > c? "),
            (" 'a\\'b == c' == d ", " 'a\\'b == c' == d? "),
            (" a < b < c ", " a? < b? < c? "),
        ] {
            assert_eq!(charged(code, false), wanted, "{code}");
        }
        for (code, wanted) in [
            (" if a == b ", " if a? == b? "),
            (" set a = b == c ", " set a = b? == c? "),
            (" for a, b in c if a in d ", " for a, b in c if a? in d@ "),
            (" for a in b[1:] recursive ", " for a in <b>[1:] recursive "),
            (" include a ~ '.j2' ignore missing ", " include a$ ~ '.j2' ignore missing "),
            (" macro f(a, b=c == d) ", " macro f(a, b=c? == d?) "),
            (" set a ", " set a "),
        ] {
            assert_eq!(charged(code, true), wanted, "{code}");
        }
    }

    #[test]
    fn code_that_the_engine_cannot_evaluate_is_refused() {
        for code in [
            "loop.cycle()",
            "loop . cycle ( *a)",
            &format!("a{}", "[b]".repeat(17)),
            &"+a".repeat(62),
        ] {
            assert!(charged_operands(code, false).is_err(), "{code}");
        }
        assert!(charged_operands("loop.cycle(1, 2) ~ a[0][1]", false).is_ok());
        for code in
            ["", "-", ")", "]]]", "'", "a[", "{:", "not", "==", "a == ", "((((", "is not in"]
        {
            assert!(charged_operands(code, true).is_ok(), "{code}");
        }
    }
}
