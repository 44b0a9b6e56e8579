//! The comparison, from requests up to the claims.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::Disagreement;
use crate::pair::{Difference, blocked, independent};
use crate::request::{Claims, Ending, Evidence};
use crate::rundir::{Arm, Bounds, Campaign, ReadError, Repetition, RunDir};
use crate::rung::{Ends, Tally, clustering, fraction, pooled, reaches, shares, t_interval};

/// Two ways of computing a figure differ by rounding; anything above is a fault.
const TOLERANCE: f64 = 1e-8;
/// Disagreements that are written out; all are counted.
const LISTED: usize = 200;

/// What came out.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Figures that were compared.
    pub compared: u64,
    /// Those that differ.
    pub disagreements: Vec<Disagreement>,
    /// Per cell: how repetitions as clusters compare with requests as a pool.
    pub clustering: Vec<Value>,
}

impl Report {
    /// Nothing differs, and something was compared.
    #[must_use]
    pub fn agrees(&self) -> bool {
        self.disagreements.is_empty() && self.compared > 0
    }

    /// As it is written.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let listed: Vec<Value> =
            self.disagreements.iter().take(LISTED).map(Disagreement::to_json).collect();
        json!({
            "schema": "goodput.recomputation/1",
            "agrees": self.agrees(),
            "compared": self.compared,
            "disagreeing": self.disagreements.len(),
            "disagreements": listed,
            "clustering": self.clustering,
        })
    }

    fn exact<T: PartialEq + ToString>(
        &mut self,
        rule: &'static str,
        place: &str,
        said: &T,
        found: &T,
    ) {
        self.compared += 1;
        if said != found {
            self.disagreements.push(Disagreement::new(rule, place, said, found));
        }
    }

    fn near(&mut self, rule: &'static str, place: &str, said: Option<f64>, found: Option<f64>) {
        self.compared += 1;
        let same = match (said, found) {
            (Some(said), Some(found)) => (said - found).abs() <= TOLERANCE * found.abs().max(1.0),
            (said, found) => said.is_none() && found.is_none(),
        };
        if !same {
            let word = |figure: Option<f64>| figure.map_or("none".to_owned(), |it| it.to_string());
            self.disagreements.push(Disagreement::new(rule, place, &word(said), &word(found)));
        }
    }

    fn ends(&mut self, rule: &'static str, place: &str, said: Option<Ends>, found: Option<Ends>) {
        self.near(rule, place, said.map(|it| it.0), found.map(|it| it.0));
        self.near(rule, place, said.map(|it| it.1), found.map(|it| it.1));
    }
}

/// Computes everything again and compares it with `analysis.json` and `verdict.json`.
///
/// # Errors
/// [`ReadError`] when a file is absent or bad.
pub fn check(dir: &RunDir) -> Result<Report, ReadError> {
    let (campaign, bounds) = (dir.campaign()?, dir.bounds()?);
    let analysis = dir.json("analysis.json")?;
    let verdict = dir.json("verdict.json")?;
    let mut report = Report::default();
    let mut tallies = Tallies::new();
    for arm in &campaign.arms {
        let said = named(&analysis["arms"], &arm.name);
        let mut rungs = Vec::new();
        for rate in &campaign.rates {
            let recorded = dir.repetitions(&arm.name, *rate, campaign.imported)?;
            let cell = at_rate(&said["cells"], *rate);
            let valid = repetitions(&mut report, &campaign, bounds, (arm, *rate), &recorded, cell);
            rung(&mut report, &campaign, (arm, *rate), &valid, cell);
            rungs.push((*rate, valid.values().copied().collect::<Vec<_>>()));
            tallies.insert((arm.name.clone(), rate.to_string()), valid);
        }
        knee(&mut report, &campaign, &analysis, arm, &rungs, &said["knee"]);
    }
    comparisons(&mut report, &campaign, &tallies, &analysis);
    wins(&mut report, &campaign, &tallies, &verdict);
    Ok(report)
}

/// By arm and rate: the valid repetitions by number.
type Tallies = BTreeMap<(String, String), BTreeMap<u64, Tally>>;

fn named<'a>(list: &'a Value, name: &str) -> &'a Value {
    let found = list.as_array().into_iter().flatten().find(|it| it["name"] == name);
    found.unwrap_or(&Value::Null)
}

fn at_rate(list: &Value, rate: f64) -> &Value {
    let is =
        |it: &&Value| it["rate_rps"].as_f64().is_some_and(|said| said.total_cmp(&rate).is_eq());
    list.as_array().into_iter().flatten().find(is).unwrap_or(&Value::Null)
}

/// Every repetition against its requests. Gives the tallies of those that the analysis calls valid.
fn repetitions(
    report: &mut Report,
    campaign: &Campaign,
    bounds: Bounds,
    (arm, rate): (&Arm, f64),
    recorded: &[Repetition],
    cell: &Value,
) -> BTreeMap<u64, Tally> {
    let said = |number: u64| {
        let list = cell["repetitions"].as_array().into_iter().flatten();
        list.into_iter().find(|it| it["repetition"] == number).unwrap_or(&Value::Null)
    };
    let place = format!("{} r{rate}", arm.name);
    let listed = cell["repetitions"].as_array().map_or(0, Vec::len);
    report.exact("repetitions", &place, &listed, &recorded.len());
    let mut valid = BTreeMap::new();
    for rep in recorded {
        let (place, said) = (format!("{place} rep{}", rep.number), said(rep.number));
        // What the analyzer discards may be any broken thing: nothing is claimed of it.
        if said["valid"] == true {
            let tally = repetition(report, campaign, bounds, &place, rep, said);
            valid.insert(rep.number, tally);
        }
    }
    valid
}

fn repetition(
    report: &mut Report,
    campaign: &Campaign,
    bounds: Bounds,
    place: &str,
    rep: &Repetition,
    said: &Value,
) -> Tally {
    let planned: BTreeMap<u64, i128> = rep.planned.iter().copied().collect();
    let seen: BTreeSet<u64> = rep.requests.iter().map(|(evidence, _)| evidence.index).collect();
    report.exact("each scheduled row once", place, &rep.planned.len(), &planned.len());
    report.exact("each request once", place, &rep.requests.len(), &seen.len());
    report.exact("a record for each row", place, &seen.len(), &planned.len());
    for (evidence, claims) in &rep.requests {
        let place = format!("{place} request {}", evidence.index);
        let offset = planned.get(&evidence.index).copied();
        let due = offset.map(|offset| rep.window_start + offset);
        report.exact("planned instant", &place, &word(Some(evidence.planned)), &word(due));
        request(report, &place, evidence, claims);
    }
    let delivered = rep.requests.iter().filter(|(it, _)| it.ending() != Ending::Failed).count();
    let good = |(it, _): &&(Evidence, Claims)| {
        it.good(bounds.ttft, bounds.tpot, campaign.without_tpot_counts)
    };
    let tally = Tally {
        good: rep.requests.iter().filter(good).count() as u64,
        attempted: planned.len() as u64,
    };
    let count = |value: &Value| value.as_u64().unwrap_or(0);
    let (classes, counts) = (&said["classes"], &said["counts"]);
    let all: u64 = classes.as_object().into_iter().flat_map(|it| it.values()).map(count).sum();
    report.exact("classes add up to attempted", place, &all, &tally.attempted);
    let whole = count(&classes["ok"]) + count(&classes["single_token"]);
    report.exact("delivered", place, &whole, &(delivered as u64));
    report.exact("attempted", place, &count(&counts["attempted"]), &tally.attempted);
    report.exact("good", place, &count(&counts["good"]), &tally.good);
    tally
}

fn word(figure: Option<i128>) -> String {
    figure.map_or("none".to_owned(), |it| it.to_string())
}

/// A record's own claims against its evidence.
fn request(report: &mut Report, place: &str, evidence: &Evidence, claims: &Claims) {
    let ending = evidence.ending();
    let said = matches!(claims.class.as_str(), "ok" | "single_token");
    report.exact("delivered", place, &said, &(ending != Ending::Failed));
    report.exact("ttft_ns", place, &unit(claims.ttft, evidence.ttft()), &word(evidence.ttft()));
    let tpot = (ending == Ending::Whole).then(|| tpot(evidence)).flatten();
    report.exact("tpot_ns", place, &unit(claims.tpot, tpot), &word(tpot));
    let disorder = evidence.disorder().filter(|_| ending != Ending::Failed);
    let text = disorder.map_or("in order".to_owned(), |(a, b)| format!("{a} after {b}"));
    report.exact("instants", place, &text, &"in order".to_owned());
}

/// Time between the tokens over the intervals, rounded down, at least 1.
fn tpot(evidence: &Evidence) -> Option<i128> {
    let intervals = i128::from(evidence.tokens) - 1;
    Some(((evidence.last_token? - evidence.first_token?) / intervals).max(1))
}

/// The claim as text; when it is off by a power of 1,000 that is said, for it is a unit.
fn unit(said: Option<i128>, found: Option<i128>) -> String {
    let text = word(said);
    let (Some(said), Some(found)) = (said, found) else { return text };
    let scaled = |factor: i128| said != 0 && said != found && found / factor == said;
    match (scaled(1_000), scaled(1_000_000)) {
        (true, _) => format!("{text} (microseconds?)"),
        (_, true) => format!("{text} (milliseconds?)"),
        _ => text,
    }
}

fn rung(
    report: &mut Report,
    campaign: &Campaign,
    (arm, rate): (&Arm, f64),
    valid: &BTreeMap<u64, Tally>,
    said: &Value,
) {
    let place = format!("{} r{rate}", arm.name);
    let tallies: Vec<Tally> = valid.values().copied().collect();
    let sum = pooled(&tallies);
    let count = |key: &str| said["counts"][key].as_u64().unwrap_or(0);
    report.exact("good of the cell", &place, &count("good"), &sum.good);
    report.exact("attempted of the cell", &place, &count("attempted"), &sum.attempted);
    report.near("good-fraction", &place, said["good_fraction"].as_f64(), fraction(&tallies));
    let goodput = fraction(&tallies).map(|share| share * rate / arm.accelerators as f64);
    report.near("goodput", &place, said["goodput_per_accelerator"].as_f64(), goodput);
    let interval = t_interval(&shares(&tallies), campaign.confidence);
    report.ends("interval", &place, interval_of(&said["interval_t"]), interval);
    if let Some(it) = clustering(&tallies, campaign.confidence) {
        if !said["dispersion"].is_null() {
            let dispersion = &said["dispersion"];
            report.near("dispersion", &place, dispersion["phi"].as_f64(), Some(it.phi));
            let word = dispersion["word"].as_str().unwrap_or_default();
            report.exact("dispersion", &place, &word, &it.word());
        }
        report.clustering.push(json!({
            "place": place,
            "phi": it.phi,
            "band": [it.band.0, it.band.1],
            "half_width_clusters": it.half_width_clusters,
            "half_width_pooled": it.half_width_pooled,
            "word": it.word(),
        }));
    }
}

fn interval_of(value: &Value) -> Option<Ends> {
    Some((value["low"].as_f64()?, value["high"].as_f64()?))
}

/// The highest rate that reaches the target, among the cells with enough repetitions.
fn knee(
    report: &mut Report,
    campaign: &Campaign,
    analysis: &Value,
    arm: &Arm,
    rungs: &[(f64, Vec<Tally>)],
    said: &Value,
) {
    let needed = analysis["repetitions_needed"].as_u64().unwrap_or(u64::MAX);
    for (key, least) in [("tested", needed), ("provisional", 1)] {
        let enough = rungs.iter().filter(|(_, tallies)| tallies.len() as u64 >= least);
        let passing = enough.filter(|(_, tallies)| reaches(pooled(tallies), campaign.target));
        let highest = passing.map(|(rate, _)| *rate).next_back();
        let rate = said[key]["rung"]["rate_rps"].as_f64();
        // A knee that the analysis declines to name is no claim.
        if rate.is_some() || said[key]["outcome"] == "below" {
            report.near("knee", &arm.name, rate, highest);
        }
    }
}

fn difference(
    campaign: &Campaign,
    tallies: &Tallies,
    (floor, arm, rate): (&str, &str, f64),
    confidence: f64,
) -> Option<Difference> {
    let of = |name: &str| tallies.get(&(name.to_owned(), rate.to_string()));
    let (first, second) = (of(floor)?, of(arm)?);
    if !campaign.paired {
        let all = |them: &BTreeMap<u64, Tally>| shares(&them.values().copied().collect::<Vec<_>>());
        return independent(&all(first), &all(second), confidence);
    }
    let both: Vec<u64> = first.keys().filter(|it| second.contains_key(it)).copied().collect();
    let of_both = |them: &BTreeMap<u64, Tally>| {
        shares(&both.iter().filter_map(|it| them.get(it).copied()).collect::<Vec<_>>())
    };
    blocked(&of_both(first), &of_both(second), confidence)
}

fn comparisons(report: &mut Report, campaign: &Campaign, tallies: &Tallies, analysis: &Value) {
    for said in analysis["comparisons"].as_array().into_iter().flatten() {
        let text = |key: &str| said[key].as_str().unwrap_or_default().to_owned();
        let (arm, floor) = (text("arm"), text("floor"));
        let rate = said["rate_rps"].as_f64().unwrap_or(f64::NAN);
        let place = format!("{arm} - {floor} r{rate}");
        let found = difference(campaign, tallies, (&floor, &arm, rate), campaign.confidence);
        equivalence(report, campaign, tallies, (&floor, &arm, rate), &said["equivalence"]);
        let estimate = said["difference"]["estimate"].as_f64();
        report.near("difference", &place, estimate, found.map(|it| it.estimate));
        let interval = interval_of(&said["difference"]["interval"]);
        let found = found.and_then(|it| it.interval);
        report.ends("interval of the difference", &place, interval, found);
    }
}

/// EQUIVALENT says that the 1 - 2 alpha interval lies strictly inside the registered margin. Without variance the
/// analyzer falls back on pooled requests, and the claim is left to it.
fn equivalence(
    report: &mut Report,
    campaign: &Campaign,
    tallies: &Tallies,
    (floor, arm, rate): (&str, &str, f64),
    said: &Value,
) {
    let (Some(delta), false) = (campaign.delta, said.is_null()) else { return };
    let place = format!("{arm} - {floor} r{rate}");
    let confidence = 1.0 - 2.0 * campaign.alpha;
    let found = difference(campaign, tallies, (floor, arm, rate), confidence);
    let Some(ends) = found.and_then(|it| it.interval) else { return };
    let tost = &said["tost"];
    report.ends("interval of the equivalence", &place, interval_of(&tost["interval"]), Some(ends));
    let inside = -delta < ends.0 && ends.1 < delta;
    report.exact("equivalence", &place, &(tost["outcome"] == "EQUIVALENT"), &inside);
}

/// A win is claimed only where the whole interval lies above 0; where no repetition varies, the analyzer falls back
/// on pooled requests, and the estimate alone is compared.
fn wins(report: &mut Report, campaign: &Campaign, tallies: &Tallies, verdict: &Value) {
    for win in verdict["wins"].as_array().into_iter().flatten() {
        let text = |key: &str| win[key].as_str().unwrap_or_default().to_owned();
        let (arm, floor) = (text("arm"), text("floor"));
        let rate = win["rate_rps"].as_f64().unwrap_or(f64::NAN);
        let place = format!("{arm} over {floor} r{rate}");
        let found = difference(campaign, tallies, (&floor, &arm, rate), campaign.confidence);
        report.near("win", &place, win["difference"].as_f64(), found.map(|it| it.estimate));
        let above = found.is_some_and(|it| it.interval.map_or(it.estimate, |(low, _)| low) > 0.0);
        report.exact("win", &place, &true, &above);
    }
}
