//! Reads OpenMetrics text strictly (OpenMetrics 1.0, section "Text Format"): what `top` draws from.

use std::collections::{BTreeMap, BTreeSet};

/// One sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Its name with its suffix.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its value.
    pub value: f64,
}

/// One metric family.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParsedFamily {
    /// Its type, as its `# TYPE` line names it.
    pub kind: String,
    /// Its unit.
    pub unit: Option<String>,
    /// What it says.
    pub help: Option<String>,
    /// Its samples, in order.
    pub samples: Vec<Sample>,
}

/// Every family, by name.
pub type Families = BTreeMap<String, ParsedFamily>;

/// Text that is not OpenMetrics.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}; ask an agent of the same version")]
pub struct ParseError {
    /// Line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub what: String,
}

/// Reads `text`.
///
/// # Errors
/// [`ParseError`] at the first line that breaks the format.
pub fn parse(text: &str) -> Result<Families, ParseError> {
    let mut reader = Reader::default();
    for (index, line) in text.split_inclusive('\n').enumerate() {
        reader.line(line).map_err(|what| ParseError { line: index + 1, what })?;
    }
    if !reader.ended {
        let line = text.lines().count();
        return Err(ParseError { line, what: "the text ends without `# EOF`".to_owned() });
    }
    Ok(reader.families)
}

#[derive(Default)]
struct Reader {
    families: Families,
    current: Option<String>,
    series: BTreeSet<String>,
    ended: bool,
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<(), String> {
        if self.ended {
            return Err("something follows `# EOF`".to_owned());
        }
        if line == "# EOF\n" || line == "# EOF" {
            self.ended = true;
            return Ok(());
        }
        let line = line.strip_suffix('\n').ok_or("the line does not end")?;
        match line.strip_prefix("# ") {
            Some(comment) => self.describe(comment),
            None => self.sample(line),
        }
    }

    fn describe(&mut self, comment: &str) -> Result<(), String> {
        let mut parts = comment.splitn(3, ' ');
        let (Some(what), Some(name), Some(text)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err("a descriptor has three parts".to_owned());
        };
        if self.current.as_deref() != Some(name) {
            if self.families.contains_key(name) {
                return Err(format!("family {name} comes twice"));
            }
            self.current = Some(name.to_owned());
        }
        let family = self.families.entry(name.to_owned()).or_default();
        if !family.samples.is_empty() {
            return Err(format!("{name} is described after its samples"));
        }
        match what {
            "TYPE" => family.kind = text.to_owned(),
            "HELP" => family.help = Some(text.to_owned()),
            "UNIT" if name.ends_with(&format!("_{text}")) => family.unit = Some(text.to_owned()),
            _ => return Err(format!("`{what} {text}` does not describe {name}")),
        }
        Ok(())
    }

    fn sample(&mut self, line: &str) -> Result<(), String> {
        let sample = read_sample(line)?;
        let name = self.current.as_ref().ok_or("a sample without a family")?;
        let family = self.families.get_mut(name).ok_or("a sample without a family")?;
        let suffixes: &[&str] = match family.kind.as_str() {
            "counter" => &["_total"],
            "gauge" => &[""],
            "histogram" => &["_bucket", "_count", "_sum"],
            "info" => &["_info"],
            other => return Err(format!("type `{other}` is not known")),
        };
        let suffix = sample.name.strip_prefix(name.as_str());
        if !suffix.is_some_and(|suffix| suffixes.contains(&suffix)) {
            return Err(format!("{} is no sample of {} {name}", sample.name, family.kind));
        }
        if family.kind != "gauge" && (sample.value < 0.0 || sample.value.is_nan()) {
            return Err(format!("{} is {}", sample.name, sample.value));
        }
        if !self.series.insert(format!("{}{:?}", sample.name, sample.labels)) {
            return Err(format!("{} comes twice with the same labels", sample.name));
        }
        family.samples.push(sample);
        Ok(())
    }
}

fn is_name(text: &str) -> bool {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.starts_with(first) && text.chars().all(|c| first(c) || c.is_ascii_digit() || c == ':')
}

fn read_sample(line: &str) -> Result<Sample, String> {
    let end = line.find(['{', ' ']).ok_or("a sample has a name and a value")?;
    let (name, rest) = line.split_at(end);
    if !is_name(name) {
        return Err(format!("`{name}` is no name"));
    }
    let (labels, value) = match rest.strip_prefix('{') {
        Some(inner) => read_labels(inner)?,
        None => (BTreeMap::new(), rest),
    };
    let value = value.strip_prefix(' ').ok_or("one blank stands before a value")?;
    let number = match value {
        "+Inf" => f64::INFINITY,
        other => other.parse().map_err(|_| format!("`{other}` is no number"))?,
    };
    Ok(Sample { name: name.to_owned(), labels, value: number })
}

/// Labels up to the closing brace, and what follows it.
fn read_labels(mut rest: &str) -> Result<(BTreeMap<String, String>, &str), String> {
    let mut labels = BTreeMap::new();
    loop {
        let (name, quoted) = rest.split_once("=\"").ok_or("a label has a quoted value")?;
        let (value, after) = read_quoted(quoted)?;
        if !is_name(name) || labels.insert(name.to_owned(), value).is_some() {
            return Err(format!("`{name}` is no label here"));
        }
        if let Some(after) = after.strip_prefix('}') {
            return Ok((labels, after));
        }
        rest = after.strip_prefix(',').ok_or("labels are separated by commas")?;
    }
}

fn read_quoted(text: &str) -> Result<(String, &str), String> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Ok((value, text.get(at + 1..).unwrap_or_default())),
            '\\' => match chars.next() {
                Some((_, 'n')) => value.push('\n'),
                Some((_, c @ ('\\' | '"'))) => value.push(c),
                _ => return Err("an escape is \\\\, \\\" or \\n".to_owned()),
            },
            c => value.push(c),
        }
    }
    Err("a quoted value does not end".to_owned())
}
